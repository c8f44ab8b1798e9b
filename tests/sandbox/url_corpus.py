"""URLs that must be refused and URLs that must not, by kind. Written for this project.

`SPELLINGS` must be refused by the text alone: the test's resolver gives a public address for every name it is asked.
`ANSWERS` are ordinary names whose addresses must be refused; in `MIXED` one bad address hides among public ones.
"""

# ruff: noqa: E501  wide characters count twice

from __future__ import annotations

PUBLIC = "93.184.216.34"

_IPV4 = """
127.0.0.1 127.1 127.0.1 127.0.0.1. 127.000.000.001 0177.0.0.1 0177.0.0.01 0177.1 00000177.0.0.1 0x7f.0.0.1 0x7f.1
0x7F.0x0.0x0.0x1 0x7f000001 0X7F000001 0x0000007f000001 2130706433 017700000001 0 0.0.0.0 00 0x0 0x 0.0 1 16843009
3232235521 0xc0a80001 030052000001 192.168.1 192.168.0.1 10.0.0.1 10.1 012.0.0.1 0xa.0.0.1 167772161 172.16.0.1
0xac100001 169.254.169.254 0xa9fea9fe 2852039166 025177524776 169.254.43518 169.16689662 0251.0376.0251.0376
0xa9.0xfe.0xa9.0xfe 169.254.0xa9fe 100.64.0.1 100.100.100.200 198.18.0.1 192.0.0.192 224.0.0.1 255.255.255.255
4294967295 4294967296 8.8.8.8 1.1.1.1 134744072 0x08080808 010.010.010.010 93.184.216.34 93.184.55522 256.0.0.1
1.2.3.4.5 127.0.0.1.5 1.2.3.256 127.0.0.0x1 127.0.0.08 example.0x7f example.1 example.com.1 168.63.129.16 0x7f.00.0.1
""".split()

_IPV6 = """
[::1] [::] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::ffff:127.0.0.1] [::ffff:7f00:1]
[::FFFF:7F00:0001] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:0:127.0.0.1] [::127.0.0.1] [::7f00:1] [::ffff:169.254.169.254]
[::ffff:a9fe:a9fe] [64:ff9b::7f00:1] [64:ff9b::169.254.169.254] [64:ff9b:1::10.0.0.1] [2002:7f00:1::] [2002:a9fe:a9fe::1]
[2001:0:53aa:64c:0:fbff:80ff:fffe] [2001::1] [fe80::1] [fe80::1%eth0] [fe80::1%25eth0] [fc00::1] [fd00:ec2::254]
[fec0::1] [ff02::1] [2001:db8::1] [100::1] [3fff::1] [2606:2800:220:1:248:1893:25c8:1946] [2606:4700:4700::1111]
[v1.127.0.0.1] [vF.::1] [] [ [::1 ::1] ::1 ::ffff:127.0.0.1 2606:4700:4700::1111 [127.0.0.1] [example.com]
[::1]example.com example.com[::1] [::1].example.com
""".split()

_USERINFO = """
https://user@example.com/ https://user:pw@example.com/ https://@example.com/ https://:@example.com/ https://:pw@example.com/
https://example.com@127.0.0.1/ https://example.com:443@127.0.0.1/ https://127.0.0.1@example.com/ https://a@b@example.com/
https://example.com%40127.0.0.1/ https://example.com%00@127.0.0.1/ https://example.com#@127.0.0.1/
https://example.com?@127.0.0.1/ https://example.com#@example.org https://example.com?x=@example.org
https://example.com;@127.0.0.1/ https://example.com&@127.0.0.1/ https://example.com:@127.0.0.1/
https://user%20name@example.com https://user%3Apw@example.com https://https://@example.com/
""".split()

_SCHEMES = """
http://example.com/ HTTP://example.com/ ftp://example.com/ file:///etc/passwd file://localhost/etc/passwd
gopher://example.com:70/_x dict://example.com:2628/ ldap://example.com/ ldaps://example.com/ sftp://example.com/
tftp://example.com/ ws://example.com/ wss://example.com/ data:text/plain,hello data:text/html;base64,PGI+
javascript:alert(1) javascript://example.com/%0aalert(1) jar:https://example.com!/x view-source:https://example.com/
blob:https://example.com/1 about:blank git://example.com/x ssh://example.com/x git+https://example.com/x
unix:/var/run/docker.sock http+unix://%2Fvar%2Frun%2Fdocker.sock/info netdoc:///etc/passwd url:https://example.com/
httpss://example.com/ https+http://example.com/ https.://example.com mailto:someone@example.com tel:1 php://input
feed:https://example.com/ httphttps://example.com/ ht%74ps://example.com/ https%3A//example.com/ https%3A%2F%2Fexample.com
""".split()

_SLASHES = [
    "example.com", "example.com/path", "//example.com/", "///example.com", "/example.com", "https:example.com",
    "https:/example.com", "https:///example.com", "https:////example.com/", "https://", "https:", "https:///",
    "https://?x", "https://#x", "https://.", "https://..", "https:\\\\example.com", "https:\\/example.com",
    "https:/\\example.com", "https://\\example.com", "https://example.com\\", "https://example.com\\@127.0.0.1/",
    "https://example.com\\.127.0.0.1/", "https://127.0.0.1\\@example.com/", "https://example.com/\\..\\x",
    "\\\\example.com\\share", "https://example.com:443\\x", "https://://example.com", "https://:443/", "https://:443",
    "?https://example.com", "#https://example.com", "https", "https//example.com", ":https://example.com", "://example.com",
    "https://https://example.com/", "https://http://127.0.0.1/",
]  # fmt: skip

_BLANKS = [
    "", " ", "\t", " https://example.com/", "https://example.com/ ", "\thttps://example.com/", "https://example.com/\t",
    "https://example.com/\r", "https://exam\tple.com/", "htt\tps://example.com/", "https:/\t/example.com/",
    "https://example.com/a b", "https://exam ple.com/", "https:// example.com/", "https://example.com /",
    "https://example.com\t@127.0.0.1/", "https://example.com/\x00", "https://example.com\x00.example.org/",
    "\x00https://example.com/", "https://example.com/\x01", "https://example.com/\x1b[31m", "https://example.com/\x7f",
    "https://example.com/\x85", "https://example.com/\xa0", "https://example.com/\u2028", "https://example.com/\u2029",
    "https://example.com/\u200b", "https://exa\u200bmple.com/", "https://exam\u00adple.com/", "https://exa\u2060mple.com/",
    "https://exa\ufeffmple.com/", "\ufeffhttps://example.com/", "https://example.com/\u202egpj.exe",
    "https://exa\u202emple.com", "https://exa\u200dmple.com", "https://exa\u200cmple.com", "https://example.com/\u3000",
    "\u3000https://example.com/", "https://exa\u180emple.com/", "https://example.com/\ufffd", "https://exa\x0bmple.com",
    "https://exa\x0cmple.com", "https://example.com\x0b/", "https://example.com/\u2066x", "https://example.com/\U000e0041",
    "https://example.com/\ue000", "https://example.com/\ud800",
]  # fmt: skip

_ENCODED = """
https://%31%32%37.0.0.1/ https://127%2e0%2e0%2e1/ https://%6c%6f%63%61%6c%68%6f%73%74/ https://example%2ecom/
https://example.com%2f@127.0.0.1/ https://example.com%2fx https://example.com%23.example.org/ https://example.com%3f.example.org/
https://example.com%5c.example.org/ https://%65xample.com/ https://ex%61mple.com/ https://example.com%00/ https://example.com%09/
https://example.com%0d%0aHost:%20localhost/ https://%5b::1%5d/ https://example.com%3a443/ https://%2531%2532%2537.0.0.1/
https://%e2%91%a0%e2%91%a1%e2%91%a6.0.0.1/ https://example.com%20/ https://%20example.com/ https://example.com%252e/
https://example.com/%00 https://example.com/a%0d%0aX:%20y https://example.com/%0a https://example.com/%1b https://example.com/%7f
https://example.com/%zz https://example.com/% https://example.com/%1 https://example.com/?q=% https://example.com/?q=%0
https://example.com/?q=%u0041 https://example.com/?a=%00
""".split()

_PORTS = [f"https://example.com:{port}/" for port in
          "80 22 8443 8080 0 00443 0443 +443 -443 443a a443 4430 65979 131515 4294967739 443:443 443:80 443.0 4e2 0x1bb"
          " ４４３ ٤٤٣ 443% %34%34%33 443; 1 6379 2375 9200 99999 443, ①".split()]  # fmt: skip
_PORTS += ["https://example.com:/", "https://example.com:", "https://example.com::443/", "https://example.com:443:/"]

_SPECIAL_HOSTS = """
localhost LOCALHOST LocalHost localhost. a.localhost localhost.localdomain a.b.localhost localhost6 ip6-localhost
ip6-loopback localdomain printer.local router.LAN nas.local. a.internal metadata.google.internal METADATA.GOOGLE.INTERNAL.
metadata metadata.goog instance-data instance-data.ec2.internal host.docker.internal gateway.docker.internal
kubernetes.docker.internal kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local
vault.service.consul intranet wiki.intranet wiki.corp nas.home nas.home.arpa x.private 1.0.0.127.in-addr.arpa ipv4only.arpa
8.b.d.0.1.0.0.2.ip6.arpa expyuzz4wqqyqhjn.onion x.alt x.invalid com example broadcasthost docker dockerhost db redis
127.0.0.1.nip.io 127-0-0-1.nip.io app.10.0.0.1.nip.io 7f000001.nip.io 127-0-0-1.sslip.io localtest.me a.localtest.me lvh.me
x.lvh.me vcap.me x.vcap.me 7f000001.c0a80001.rbndr.us make-1.2.3.4-rebind-127.0.0.1-rr.1u.ms 169.254.169.254.example.com
127.0.0.1.example.com a.0x7f.0.0.1.example.com metadata.azure.com metadata.tencentyun.com metadata.packet.net
""".split()

_MALFORMED_HOSTS = [
    ".example.com", "example..com", "example.com..", "..", "-example.com", "example-.com", "exa_mple.com", "_dmarc.example.com",
    "exam!ple.com", "exam$ple.com", "exam&ple.com", "exam'ple.com", "exam(ple).com", "exam*ple.com", "*.example.com",
    "exam+ple.com", "exam,ple.com", "exam;ple.com", "example.com;evil.org", "exam=ple.com", "exam~ple.com", "exam|ple.com",
    "exam^ple.com", "exam`ple.com", "exam{ple}.com", 'exam"ple.com', "<example.com>", "example.com,evil.org", "a" * 64 + ".com",
    ".".join(["a" * 63] * 4) + ".com", "a." * 127 + "com", "example.c", "example.c-m", "example.-com", "example.com-",
    "${host}.example.com", "{{host}}", "$(id).example.com", "`id`.example.com",
]  # fmt: skip

_INTERNATIONAL_HOSTS = [
    # what other programs map to ASCII
    "１２７.０.０.１", "①②⑦.⓪.⓪.①", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "ｌｏｃａｌｈｏｓｔ", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "𝓁𝑜𝒸𝒶𝓁𝒽ℴ𝓈𝓉",
    "localhost。", "example。com", "example．com", "ｅxample.com", "ⓔxample.com", "𝐞xample.com", "exam\u212ale.com", "\u212aiwi.com",
    "ex\u00aample.com", "exampl\u212e.com", "ﬁle.com", "ｅｘａｍｐｌｅ.ｃｏｍ", "example.cℴm", "\u2488example.com", "2⑴.example.com",
    "example.com／path", "example.com⁄path", "example.com∕path", "example.com＃x", "example.com？x", "example.com＠127.0.0.1",
    "example.com：443", "example.com℀.org", "example.com＼.org", "１.example.com", "²example.com", "½.example.com", "example.com․",
    "१२७.०.०.१", "١٢٧.٠.٠.١", "๑๒๗.example.com", "exa‐mple.com", "exa–mple.com", "exa−mple.com", "a\u0338.example.com/",
    "İexample.com", "ẛ̣.com", "faſt.com", "a\u200db.com", "\u0301a.com",
    # names that pass for others
    "аpple.com", "аррӏе.com", "раураӏ.com", "gооgle.com", "gооgle.сom", "exаmple.com", "ехample.com", "micrоsoft.com",
    "paypaӏ.com", "ɡoogle.com", "ԍoogle.com", "οοο.com", "gοοgle.com", "ɑpple.com", "exαmple.com", "օօօ.com", "googӏe.com",
    "exampleノpath.com", "example一x.com", "whatsаpp.com", "асе.com", "хх.org", "νvidia.com", "ոօհ.com", "amazօn.com",
    # xn-- labels
    "xn--80ak6aa92e.com", "xn--pple-43d.com", "xn--ggle-0nda.com", "xn--", "xn--.com", "xn---.com", "xn--a.com", "xn--localhost-.com",
    "xn--example-.com", "xn--\u00fc.com", "xn--zzzzzzzzzzzz99999.com", "xn--0.com", "xn--127-.com", "XN--80AK6AA92E.COM",
    "xn--fiqs8sxootzz.xn--hlcj9au5esb", "xn--a-ecp.ru", "xn--99999999.com", "example.xn--", "example.xn--a", "xn--ls8h.la",
    "xn--i-7iq.com", "☃.net", "❤.com", "💩.la", "\u0378.com", "xn--n3h.net",
]  # fmt: skip

SPELLINGS: list[str] = [
    *[f"https://{host}/" for host in _IPV4 + _IPV6 + _SPECIAL_HOSTS + _MALFORMED_HOSTS + _INTERNATIONAL_HOSTS],
    *_USERINFO, *_SCHEMES, *_SLASHES, *_BLANKS, *_ENCODED, *_PORTS,
    "https://example.com/" + "a" * 9000, 'https://example.com/"x"', "https://example.com/<x>", "https://example.com/^",
    "https://example.com/`id`", "https://example.com/{x}", "https://example.com:443@127.0.0.1:443/",
    *[f"https://{host}:443/x?y#z" for host in ("127.1", "0x7f.1", "[::1]", "localhost", "2130706433", "017700000001")],
]  # fmt: skip

_REFUSED = """
0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.0.0.1 10.255.255.255 100.64.0.0 100.64.0.1 100.100.100.200 100.127.255.255
127.0.0.1 127.0.0.53 127.255.255.255 169.254.0.1 169.254.169.254 169.254.170.2 169.254.255.255 172.16.0.1 172.31.255.255
192.0.0.1 192.0.0.9 192.0.0.170 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255
198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.254 255.255.255.255 168.63.129.16
:: ::1 ::2 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::ffff:0:7f00:1 ::7f00:1 ::8.8.8.8 64:ff9b::7f00:1 64:ff9b::808:808
64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 64:ff9b:1:ffff::1 100::1 2001::1 2001:0:53aa:64c:0:fbff:80ff:fffe 2001:2::1 2001:10::1
2001:20::1 2001:1ff::1 2001:db8::1 2002:7f00:1::1 2002:808:808::1 3ffe::1 3fff::1 4000::1 5f00::1 8000::1 fc00::1 fd00::1
fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0 fe80::1%2 febf::1 fec0::1 ff02::1 ff0e::1 2606:4700::5efe:7f00:1
2606:4700::200:5efe:a00:1 2606:4700::1%eth0
""".split()
ANSWERS: list[str] = [
    *_REFUSED,
    "",
    "localhost",
    "127.1",
    "0177.0.0.1",
    "0x7f000001",
    "2130706433",
    "1.1.1.1 ",
    "01.1.1.1",
    "[::1]",
    "1.1.1",
]

MIXED: list[list[str]] = [
    [PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "1.1.1.1", "10.0.0.1"], [PUBLIC, "::1"], ["2606:4700::1111", "fe80::1"],
    [PUBLIC, "169.254.169.254"], [PUBLIC] * 9 + ["192.168.1.1"], [PUBLIC, "::ffff:127.0.0.1"], [PUBLIC, "64:ff9b::a00:1"],
    [PUBLIC, ""], [PUBLIC, "garbage"], [PUBLIC, "100.64.0.1"], [], [PUBLIC] * 65,
]  # fmt: skip

LEGITIMATE: dict[str, str] = {
    "https://example.com": "https://example.com/",
    "https://example.com/": "https://example.com/",
    "HTTPS://EXAMPLE.COM/Path": "https://example.com/Path",
    "https://example.com.": "https://example.com/",
    "https://example.com:443/x": "https://example.com/x",
    "https://Example.com.:443/x": "https://example.com/x",
    "https://example.com/#part": "https://example.com/",
    "https://example.com#part": "https://example.com/",
    "https://example.com?x=1": "https://example.com/?x=1",
    "https://example.com/?": "https://example.com/?",
    "https://example.com/a/../b": "https://example.com/b",
    "https://example.com/a/%2e%2E/b/.": "https://example.com/b/",
    "https://example.com/../../x": "https://example.com/x",
    "https://example.com/%7euser/%e6%95%b0": "https://example.com/%7Euser/%E6%95%B0",
    "https://example.com/数据/表.csv?年=2013": "https://example.com/%E6%95%B0%E6%8D%AE/%E8%A1%A8.csv?%E5%B9%B4=2013",
    "https://bücher.example/ü": "https://xn--bcher-kva.example/%C3%BC",
    "https://BÜCHER.example/": "https://xn--bcher-kva.example/",
    "https://bu\u0308cher.example/": "https://xn--bcher-kva.example/",
    "https://xn--bcher-kva.example/": "https://xn--bcher-kva.example/",
    "https://XN--BCHER-KVA.example/": "https://xn--bcher-kva.example/",
    "https://例え.jp/": "https://xn--r8jz45g.jp/",
    "https://faß.de/": "https://xn--fa-hia.de/",
    "https://президент.рф/": "https://xn--d1abbgf6aiiy.xn--p1ai/",
    "https://中国.icom.museum/": "https://xn--fiqs8s.icom.museum/",
}
OTHERS: list[str] = """
https://www.example.org/index.html https://data.gov.uk/dataset/a_b-c~d.csv https://raw.githubusercontent.com/o/r/main/f.csv
https://example.com/@user/post https://example.com/a:b https://example.com/a;v=1,2 https://example.com/(x)'!*$&+=
https://example.com/?q=a+b&c=%20d https://example.com/?a[]=1&a[]=2 https://fonts.example.com/css?family=A|B
https://example.com/?next=https://example.org/ https://example.com/?mail=a@example.org https://example.com//double//slash
https://r3---sn-abc.googlevideo.com/x https://a-b.c--d.example.com/ https://1.example.com/ https://123.com/
https://4chan.org/ https://0.30000000000000004.com/ https://3.14.example.com/ https://a.b.c.d.e.f.example.co.uk/
https://x.museum/ https://x.travel/ https://x.photography/ https://localhost.example.com/ https://internal.example.com/
https://local.example.com/ https://metadata.example.com/ https://mylocalhost.com/ https://homelan.com/ https://corp.com/
https://example.xn--p1ai/ https://127-0-0-1.example.com/ https://ip-10-0-0-1.example.com/ https://v1.2.example.com/
https://example.com/sparql?query=SELECT%20*%0AWHERE%20%7B%7D https://example.com/%E4%BD%A0%E5%A5%BD
https://example.com/%B9%AB%CB%BE https://example.com/127.0.0.1 https://example.com/http://localhost/ https://example.com/%2f%2F
https://example.com/?x=%5C&y=%40 https://cdn.example.net/img.png?width=100&height=200 https://example.com/a.tar.gz
https://example.com/?sig=AbC%2Fd%3D%3D&Expires=1700000000 https://s3.us-east-1.amazonaws.com/bucket/key https://a.co/
https://bucket.s3.amazonaws.com/key?X-Amz-Date=20261201T000000Z https://registry.npmjs.org/@types/node https://x.io/
https://pypi.org/simple/a/ https://arxiv.org/abs/2101.00001v2 https://doi.org/10.1000/182 https://api.github.com/repos/a/b?x=1
https://www.xn--fiqs8s.cn/ https://www.köln.de/ https://español.example/ https://москва.com/ https://ελληνικά.gr/
https://한국.kr/ https://ไทย.example/ https://日本語.jp/ https://中文.com/ https://việtnam.vn/ https://łódź.pl/ https://عربي.com/
https://עברית.com/ https://हिन्दी.in/ https://tシャツ.jp/ https://l·l.cat/ https://straße.de/ https://ёлка.ru/ https://データ.jp/
https://xn--e1afmkfd.xn--p1ai/ https://παράδειγμα.δοκιμή/ https://مثال.إختبار/ https://例子.测试/ https://실례.테스트/
https://उदाहरण.परीक्षा/ https://பரிட்சை.com/ https://მაგალითი.გე/ https://nic.xn--90a3ac/ https://google.セール/ https://şəhər.az/
https://www.stats.gov.cn/sj/zxfb/202401/t20240117_1946624.html https://ec.europa.eu/eurostat/api/x?format=JSON&geo=EU27_2020
""".split()
