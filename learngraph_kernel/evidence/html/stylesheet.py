"""The page's style sheet. Light and dark, narrow and wide, screen and paper; no font or picture from elsewhere."""

from __future__ import annotations

STYLESHEET = """
:root{--paper:#fdfcfa;--ink:#1d2125;--quiet:#667079;--rule:#e2dfd8;--panel:#fff;--tint:#f4f2ec;--accent:#0c7a70;--accent-tint:#e3f1ef;
--good:#1d7f4b;--good-tint:#eaf5ee;--warn:#a85a00;--warn-tint:#fdf1e0;--bad:#b3322a;--bad-tint:#fcebe9;--shadow:0 1px 2px rgba(30,25,15,.05),0 8px 28px rgba(30,25,15,.09);
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","PingFang SC","Noto Sans CJK SC","Microsoft YaHei",sans-serif;
--serif:Charter,"Bitstream Charter","Sitka Text",Cambria,Georgia,"Noto Serif CJK SC","Songti SC",serif;
--mono:ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){:root{--paper:#15181b;--ink:#e4e6e7;--quiet:#98a2aa;--rule:#2d3338;--panel:#1c2024;--tint:#20252a;--accent:#4fc0b3;
--accent-tint:#14302d;--good:#5cc489;--good-tint:#14281d;--warn:#f0a550;--warn-tint:#2f2413;--bad:#f08c84;--bad-tint:#331b19;--shadow:0 8px 28px rgba(0,0,0,.45)}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:17px/1.65 var(--serif)}
:lang(zh) .lg-body{font-family:var(--sans);line-height:1.8}
header,main,footer{max-width:46rem;margin:0 auto;padding:0 1.4rem}
header{padding-top:2.2rem;font:13px/1.5 var(--sans);color:var(--quiet);display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:baseline}
.lg-brand{font-weight:650;color:var(--ink);letter-spacing:.01em}
.lg-mark-sign{display:inline-block;width:.62em;height:.62em;margin-right:.5em;border-radius:50%;border:2px solid var(--accent);background:linear-gradient(var(--accent),var(--accent)) center/40% 40% no-repeat}
.lg-line{font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.lg-parameters{flex-basis:100%;display:flex;flex-wrap:wrap;gap:.4rem}
.lg-parameter{background:var(--tint);border-radius:4px;padding:.1rem .5rem;color:var(--ink)}
.lg-parameter span{color:var(--quiet);margin-right:.3em}
[class^="lg-banner-"]{margin:1.3rem 0 2rem;padding:.75rem 1rem;border-radius:6px;border-left:3px solid var(--rule);background:var(--tint);font:14px/1.55 var(--sans)}
.lg-banner-formal{border-left-color:var(--good)!important;background:var(--good-tint)!important}
.lg-banner-degraded{border-left-color:var(--warn)!important;background:var(--warn-tint)!important}
.lg-banner-withheld{border-left-color:var(--bad)!important;background:var(--bad-tint)!important}
.lg-tier{font-weight:650;margin-right:.6em}
.lg-banner-formal .lg-tier{color:var(--good)}.lg-banner-degraded .lg-tier{color:var(--warn)}.lg-banner-withheld .lg-tier{color:var(--bad)}
[class^="lg-banner-"] ul{margin:.4rem 0 .1rem;padding-left:1.2rem}
h1,h2,h3,h4{font-family:var(--sans);line-height:1.25;letter-spacing:-.012em;text-wrap:balance}
h1{font-size:2rem;margin:.2em 0 .7em;font-weight:680}
h2{font-size:1.3rem;margin:2.1em 0 .5em;font-weight:650}
h3{font-size:1.08rem;margin:1.8em 0 .4em}
.lg-para{margin:0 0 1.05em}.lg-para:empty{display:none}
li>.lg-para{margin-bottom:.5em}
a{color:var(--accent)}
blockquote{margin:1.2em 0;padding:.1em 0 .1em 1.1em;border-left:3px solid var(--rule);color:var(--quiet)}
.lg-body ul,.lg-body ol{padding-left:1.4em}
.lg-body>.lg-sql,code{font-family:var(--mono);font-size:.86em}
.lg-name{font-family:var(--mono);font-size:.86em;background:var(--tint);padding:.08em .3em;border-radius:3px}
hr{border:0;border-top:1px solid var(--rule);margin:2.2em 0}
img{max-width:100%;height:auto}
/* a number that opens */
.lg-number,.lg-words,.lg-cell{display:inline}
.lg-number>summary,.lg-words>summary,.lg-cell>summary{display:inline;list-style:none;cursor:pointer;white-space:nowrap;font-variant-numeric:tabular-nums lining-nums;
text-decoration:underline dotted color-mix(in srgb,var(--accent) 75%,transparent);text-decoration-thickness:.09em;text-underline-offset:.22em;border-radius:3px;padding:0 .05em;transition:background .12s}
.lg-words>summary{white-space:normal}
summary::-webkit-details-marker{display:none}
.lg-number>summary:hover,.lg-words>summary:hover,.lg-cell>summary:hover,details[open]>.lg-summary{background:var(--accent-tint)}
details[open]>.lg-summary{text-decoration-style:solid}
summary:focus-visible,a:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
/* the panel floats at full width: the sentence goes on in its line, the evidence opens below that line */
.lg-number[open]::details-content,.lg-words[open]::details-content{display:contents}
.lg-number>.lg-panel,.lg-words>.lg-panel{float:left;clear:both;width:100%}
.lg-panel{margin:.55rem 0 .9rem;padding:.95rem 1.1rem .8rem;background:var(--panel);border:1px solid var(--rule);border-left:3px solid var(--accent);border-radius:6px;
box-shadow:var(--shadow);font:13px/1.5 var(--sans);font-weight:400;letter-spacing:0;text-align:left;white-space:normal;color:var(--ink);text-wrap:wrap}
.lg-para,.lg-body li,h1,h2,h3,h4{display:flow-root}
.lg-body li{display:list-item}
.lg-head{display:flex;flex-wrap:wrap;align-items:baseline;gap:.1rem .7rem;margin-bottom:.6rem}
.lg-big{font-size:1.5rem;font-weight:640;letter-spacing:-.015em;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.lg-title{font-weight:600}.lg-quiet{color:var(--quiet);font-weight:400;overflow-wrap:anywhere}
.lg-section{margin:.85rem 0 .3rem;color:var(--quiet);font-size:12px;font-weight:600;overflow-wrap:anywhere}
.lg-code{font-family:var(--mono);font-size:.93em;overflow-wrap:anywhere}
.lg-facts{border-collapse:collapse}.lg-label{color:var(--quiet);font-weight:400;text-align:left;vertical-align:top;padding:.1rem 1rem .1rem 0;white-space:nowrap}
.lg-fact{padding:.1rem 0;vertical-align:top}
.lg-scroll{overflow-x:auto;max-width:100%}
.lg-table,.lg-prose-table{border-collapse:collapse;font-variant-numeric:tabular-nums lining-nums}
.lg-table th,.lg-table td{padding:.24rem .75rem;border-bottom:1px solid var(--rule);vertical-align:baseline;white-space:nowrap;max-width:26rem;overflow:hidden;text-overflow:ellipsis}
.lg-th,.lg-td,.lg-cited,.lg-column{text-align:left}.lg-th-number,.lg-td-number,.lg-cited-number,.lg-column-number,.lg-td-row{text-align:right}
.lg-th,.lg-th-number{font-weight:600}.lg-td-row{color:var(--quiet);font-weight:400;font-size:.9em}
.lg-cited,.lg-cited-number{background:var(--accent-tint);box-shadow:inset 0 0 0 1.5px var(--accent);font-weight:650}
.lg-column,.lg-column-number{background:var(--accent-tint)}
.lg-sql{margin:.2rem 0 .35rem;padding:.6rem .75rem;background:var(--tint);border-radius:5px;font:12px/1.55 var(--mono);white-space:pre-wrap;overflow-wrap:anywhere;max-height:22rem;overflow:auto;tab-size:4}
.lg-sql-word{color:var(--accent);font-weight:600}.lg-sql-text{color:var(--warn)}.lg-sql-number{color:var(--warn)}.lg-sql-comment{color:var(--quiet);font-style:italic}
.lg-caption{color:var(--quiet);font:12px/1.5 var(--sans);overflow-wrap:anywhere}
.lg-quote{padding:.5rem .8rem;border-left:3px solid var(--rule);white-space:pre-wrap}.lg-mark-quote{background:var(--accent-tint);color:inherit}
.lg-foot{margin-top:.7rem;padding-top:.5rem;border-top:1px solid var(--rule);color:var(--quiet);font-size:12px;overflow-wrap:anywhere}
/* a cited table: a cell's panel lies over what is below it, as wide as the table's column of text */
.lg-cited-table{position:relative;margin:1.1em 0 1.3em;font:14px/1.5 var(--sans)}
.lg-cited-table>.lg-scroll>.lg-table{min-width:100%}
.lg-cited-table>.lg-scroll>.lg-table td{overflow:visible}
.lg-cell>.lg-panel{position:absolute;left:0;right:0;z-index:5}
.lg-prose-table{margin:1em 0;font:14px/1.5 var(--sans)}.lg-prose-table th,.lg-prose-table td{padding:.3rem .75rem;border-bottom:1px solid var(--rule);text-align:left}
/* what has no evidence */
.lg-mark{background:var(--warn-tint);color:inherit;border-bottom:2px solid var(--warn);padding:0 .1em}
.lg-badge{font:600 11px/1 var(--sans);color:var(--warn);border:1px solid currentColor;border-radius:3px;padding:.1em .35em;margin:0 .15em 0 .35em;white-space:nowrap;vertical-align:.12em}
.lg-alt{color:var(--quiet);font-style:italic}
figure{margin:2em 0}figcaption{font:13px/1.5 var(--sans);color:var(--quiet);margin-top:.5rem}
.lg-queries{margin-top:3rem;border-top:1px solid var(--rule);font-family:var(--sans);font-size:14px}
.lg-queries h2{font-size:1rem;margin:1.4rem 0 .5rem}
.lg-query>summary{cursor:pointer;padding:.25rem 0}
footer{margin-top:2.5rem;padding-bottom:3rem;font:12.5px/1.6 var(--sans);color:var(--quiet)}
footer .lg-facts{border-top:1px solid var(--rule);width:100%}footer .lg-facts tr:first-child>*{padding-top:.9rem}
footer .lg-fact{width:100%}
.lg-verify{margin-top:.8rem}.lg-verify code{background:var(--tint);color:var(--ink);padding:.15em .45em;border-radius:4px;user-select:all;overflow-wrap:anywhere}
@media (max-width:40rem){body{font-size:16px}header,main,footer{padding-left:1rem;padding-right:1rem}h1{font-size:1.6rem}.lg-panel{padding:.8rem .8rem .6rem}.lg-label{white-space:normal}}
@media print{:root{--paper:#fff;--panel:#fff;--shadow:none}body{font-size:10.5pt}header,main,footer{max-width:none;padding:0}.lg-panel,figure,tr{break-inside:avoid}
.lg-cell>.lg-panel{position:static}.lg-sql{max-height:none}h2,h3{break-after:avoid}a{color:inherit}}
@media (prefers-reduced-motion:reduce){*{transition:none!important}}
"""
