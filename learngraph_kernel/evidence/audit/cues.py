"""The words that license a reading: change, comparison, share, total, mean, and what splits a sentence into clauses.

A derivation is tried only where the sentence says that one was made; these tables are that licence. English and Chinese
stand side by side because reports mix them.
"""

from __future__ import annotations

import re

CHANGE = re.compile(
    r"\b(?:ris(?:e|es|ing|en)|rose|grow(?:s|n|ing|th)?|grew|increas\w+|up|gain\w*|climb\w*|jump\w*|surg\w+"
    r"|soar\w*|fall(?:s|en|ing)?|fell|"
    r"drop\w*|declin\w+|decreas\w+|down|lost|los(?:e|es|ing|s)|shr[aiu]nk\w*|slip\w*|chang\w+|expand\w*"
    r"|improv\w+|reduc\w+|cut|"
    r"contract(?:ed|s|ion)|plung\w+|widen\w*|narrow\w*|doubl\w+|tripl\w+|halv\w+|yoy|qoq|mom|wow"
    r"|year[- ]on[- ]year|week[- ]on[- ]week|"
    r"month[- ]on[- ]month|add(?:ed|s|ing)|shed)\b"
    r"|增|涨|升|降|减|跌|下滑|回落|变化|变动|扩大|收窄|提高|改善|同比|环比|翻",
    re.I,
)
COMPARISON = re.compile(
    r"\b(?:outsold|outpac\w+|outperform\w*|surpass\w*|trail\w*|more|less|fewer|higher|lower|greater|larger"
    r"|smaller|longer|shorter|above|below|ahead|behind|than"
    r"|differ\w*|gap|margin|exceed\w*|"
    r"compared|versus|vs|spread|lead|faster|slower|better|worse)\b|比|相差|差距|差额|差|高出|高于|低于|多|少|超过|超出|领先|落后|快|慢|高|低",
    re.I,
)
SHARE = re.compile(
    r"\b(?:of|share|shares|account\w*|proportion|portion|percentage|represent\w*|rate|made up|makes? up"
    r"|making up|contribut\w+|"
    r"margin|compris\w+|constitut\w+|fraction)\b|占|比重|份额|比例|占比|其中|率|贡献|折|(?:是|为|相当于)(?=[^，。,；]{1,12}的)",
    re.I,
)
TOTAL = re.compile(
    r"\b(?:totals?|totall?ed|totall?ing|sums?|combined|together|altogether|overall|in all|aggregate"
    r"|cumulative(?:ly)?|across|jointly|between them)\b"
    r"|合计|总计|总共|共计|一共|共|总|累计|合共|加起来|全部|全年|之和",
    re.I,
)
MEAN = re.compile(
    r"\b(?:average[ds]?|averaging|mean|avg|on average|per (?:week|day|month|quarter|year|airport|\w+))\b|平均|均值"
    r"|人均|均为|日均|周均|月均|均",
    re.I,
)
AVERAGE = re.compile(r"\b(?:average[ds]?|averaging|mean|avg)\b|平均|均值|均", re.I)
"""A mean said outright: the "per" beside it divides nothing."""
RATIO = re.compile(
    r"\b(?:times|ratio|fold|multiple|per|for every|double\w*|tripl\w+|half|twice)\b|倍|比率|比值|之比|每|翻", re.I
)

MORE = re.compile(
    r"\b(?:more|higher|greater|larger|longer|above|ahead|exceed\w*|faster|lead\w*|outsold|outpac\w+"
    r"|outperform\w*|surpass\w*|over)\b|多|高出|高于|超过|超出|领先|高",
    re.I,
)
LESS = re.compile(r"\b(?:less|fewer|lower|smaller|shorter|below|behind|slower|short of)\b|少|低于|落后|低|不及", re.I)
BASE = re.compile(
    r"(?:%|\bpercent|\bper cent) of (?=(?:the |that )?(?-i:[A-Z]))|\b(?:than|compared (?:with|to)|versus|vs\.?"
    r"|against|relative to|above|below|exceed\w*|outsold|outpac\w+"
    r"|outperform\w*|surpass\w*|trail\w*|ahead of|behind"
    r"|that of|as (?:many|much|large|high|long|big|great)\b.*?\bas|times)\b"
    r"|(?<![占同环对相之])比(?![例重率较值])|较|相比|高于|低于|超过|(?:是|为|相当于)(?=[^，。,；]{1,12}的)",
    re.I,
)
LEVEL_BEFORE = re.compile(
    r"(?:\b(?:to|at|from|reach(?:ed|ing)?|hit|stood at|of)|至|到|为|达|达到|从|由|自)\s*(?:(?:about|around|roughly"
    r"|nearly|almost|some|just|约|近)\s*)?(?:[$€£¥]\s*)?$",
    re.I,
)
BY_BEFORE = re.compile(
    r"\b(?:by|(?:drop|fall|decline|decrease|increase|rise|growth|gain|loss|reduction|change"
    r"|jump) of)\s*(?:about|around|roughly|nearly|almost|some)?\s*$",
    re.I,
)
MADE_UP_BEFORE = re.compile(
    r"\b(?:made|makes?|making) up\s+(?:about|around|roughly|nearly|almost|over|some)?\s*$", re.I
)
LOSS_BEFORE = re.compile(
    r"(?:\b(?:net |operating )?(?:loss(?:es)?|deficit|shortfall) (?:of|was|were|at|reached|totall?ed)|亏损(?:额|为"
    r"|达)?|赤字(?:为)?)\s*(?:about|around|约)?\s*$",
    re.I,
)
LAST_PERIOD = re.compile(
    r"\b(?:year earlier|year ago|year before|last (?:year|week|month|quarter)|previous|prior|earlier|before"
    r"|up from|down from|from|against|compared|versus|vs)\b"
    r"|去年|上年|同期|上周|上月|上季|此前|前一|较|相比",
    re.I,
)
RESPECTIVELY = re.compile(r"\brespectively\b|分别|依次", re.I)

CLAUSE_BREAK = re.compile(
    r"[,;:](?=\s|$)|[，、；：|]|[—–](?=\s)|\s-\s|\b(?:and|while|whereas|but|versus|vs|against|compared|than|from|to|with)\b"
    r"|(?:而|但是|但|以及|和|与|及|至|到|较|从|由|高于|低于)|(?<=[\u4e00-\u9fff\w])(?<![同环占对相之])比(?=[\u4e00-\u9fff\w])(?!例|重|率|值|较)",
    re.I,
)
CONJUNCTION = re.compile(r"[\s,，、]*(?:and|&|和|与|及|以及|、|plus)[\s,the]*|[\s]*[,，、]\s*", re.I)
LIST_END = re.compile(r"and|&|和|与|及|、|plus", re.I)
BACK_REFERENCE = re.compile(
    r"\b(?:together|combined|in total|in all|altogether|both|jointly|between them|the (?:two|three|four"
    r"|pair))\b|合计|共计|共|总计|两者|二者|三者|之和",
    re.I,
)
ABBREVIATIONS = frozenset(
    [
        "vs",
        "approx",
        "no",
        "e.g",
        "i.e",
        "mr",
        "mrs",
        "ms",
        "dr",
        "st",
        "inc",
        "ltd",
        "co",
        "corp",
        "u.s",
        "u.k",
        "est",
        "fig",
        "eq",
        "cf",
        "ca",
        "al",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
    ]
)
