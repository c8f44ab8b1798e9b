# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Fixed expressions that contain a number word and state no number: tables only.

An expression counts only where it covers the whole run of numeral characters (`十分` in `十分重要`, but not in `五十分`).
"""

from __future__ import annotations

ENGLISH_AFTER: dict[str, str] = {
    "one": (
        r"(?:[ -](?:of|another|by one|or another|or the other|can|could|must|may|might|should|would|cannot|who|whose|that|which|such|thing|day|"
        r"way|hand|side|possible|reason|example|explanation|notable|caveat|exception|has to|needs to|wonders|sees|finds|expects|hopes|"
        r"after another|after the other|or more|more time|question|could|note|bright spot|clear|obvious|final|last|in particular)\b"
        r"|-(?:way|off|stop|time|sided|to-one|on-one|size|man|liner|track|dimensional|click|shot|step|tailed|sample|hot|party|person|star|trick)\b|'s\b|self\b)"
    ),
    "two": r"(?:-(?:way|sided|step|dimensional|tier|tailed|faced|tone|pronged|factor|sample|thirds majority|party|handed|stage|track|speed)\b| cents\b| wrongs\b| sides of\b| birds\b| minds\b)",
    "three": r"-(?:way|dimensional|tier|pronged|star|letter|ring|legged|piece|stage|quarters-way)\b| cheers\b",
    "four": r"-(?:letter|wheel|star|leaf|season|poster|square)\b| corners of\b",
    "five": r"-(?:star|a-side)\b",
    "six": r"-(?:pack|sigma|shooter)\b| sigma\b| feet under\b",
    "seven": r" seas\b| deadly\b",
    "nine": r"-to-five\b| to five\b| times out of ten\b| lives\b",
    "ten": r" to one\b| commandments\b",
    "zero": r"(?:-(?:sum|day|based|tolerance|trust|rated|click|shot|knowledge|copy|emission|emissions|carbon|hour)\b| tolerance\b| in on\b| sum\b| trust\b| hour\b| emissions\b|ed\b|ing\b)",
    "eleven": r"th hour\b",
    "fifty": r"[- ]fifty\b",
    "twenty": r"[- ]twenty\b|[- ]four seven\b|[- ]first century\b",
    "double": r"(?!\s(?:the|that|its|last|what|their|this|those|as)\b)",
    "triple": r"(?!\s(?:the|that|its|last|what|their|this|those)\b)",
    "quadruple": r"(?!\s(?:the|that|its|last|what|their|this|those)\b)",
    "half": r"-(?:year|yearly|hearted|time|life|way|baked|brother|sister|term|marathon|day|hourly|truth|finished|full|empty|price)\b| (?:past|time|way|brother|sister)\b|way\b",
    "hundred": r" years' war\b",
    "third": r"[- ](?:party|parties|world|person|rail)\b",
    "second": r"[- ](?:hand|to none|thought|thoughts|guess|guessed|nature|best|class|opinion|rate|wind|fiddle)\b",
    "first": r"[- ](?:class|hand|of all|aid|come|place|time|name|mover|person|party|lady|principles|glance|responders?)\b",
}
"""By first word: what may follow for the pair to be an idiom."""

ENGLISH_BEFORE = frozenset(
    "no some any every each this that another which the other only loved big last next day number square plus cloud catch fantastic "
    "first new old good bad single either neither everyone".split()
)
"""Words before `one` that make it a pronoun (`no one`, `the new one`), unless a unit follows; see `exclusions`."""

ENGLISH_PHRASES = (
    "at one point", "at one time", "on one hand", "on the one hand", "back to square one", "for one thing", "one and the same", "one and only",
    "cloud nine", "catch twenty-two", "at sixes and sevens", "the big four", "the big three", "the big five", "group of seven", "group of twenty",
    "the magnificent seven", "million-dollar question", "one in a million", "a million reasons", "a thousand words", "a hundred reasons", "in two minds", "third time lucky",
    "all in one", "two of a kind", "put two and two together", "two and two", "dressed to the nines", "thanks a million", "on all fours", "the four seasons",
    "as one", "in one go", "in one fell swoop", "in one way or another", "at one stroke", "day one", "number one", "number two", "chapter one", "phase one", "phase two", "part one", "part two", "stage one", "tier one", "step one", "step two", "level one", "for one,",
    "one size fits all", "the other half", "better half", "first half", "second half", "half of the year", "half year", "half-year", "other half", "six of one", "a dime a dozen", "baker's dozen", "forty winks", "ten out of ten", "a quarter past", "a quarter to", "half past",
)  # fmt: skip

DIGIT_IDIOMS = r"[0-9]{1,3}-bit(?![a-z])|24[/x×]7(?:[/x×]365)?|9[- ]to[- ]5|9/11|50[/-]50|20/20(?= vision)|80[/-]20|1[- ]on[- ]1|1:1(?= meeting)|360[- ]degree|360度|996(?=工作|模式|制|加班)|101(?= course)|7-Eleven|[23][- ]?D(?![A-Za-z0-9])|[2-6]G(?![A-Za-z0-9])|4[kK](?= (?:video|TV|screen))|1[- ]to[- ]1|315(?=晚会)|618(?=大促|期间|购物|活动|年中)"

CHINESE = frozenset(
    (
        # adverbs and function words
        "一句话 一些 一下 一起 一样 一般 一直 一定 一旦 一切 一致 一向 一再 一边 一面 一度 一时 一线 一流 一体 一体化 一贯 一律 一共 一同 一方面 另一方面 一系列 "
        "一部分 一站式 一次性 一旁 一味 一经 一并 一道 一路 一举 一揽子 一把手 一个个 一连串 一连 一心 一手 一番 一阵 一会儿 一点 一点儿 有一点 一如 一概 一齐 一瞬 一刻 一端 "
        "一种 一类 一大批 一批 一股 一段时间 一段 一片 一代 一带 一方 一侧 一环 一员 一角 一隅 一套 一整套 一整天 一项重要 一大 一行 一来 一应 一经 一带一路 一国两制 一线城市 二线城市 三线城市 新一线 一二线 二三线 三四线 四五线 一二三线 两位数 三位数 四位数 个位数 "
        "统一 唯一 单一 同一 专一 之一 万一 逐一 不一 归一 合一 如一 划一 进一步 更进一步 每一 某一 任一 另一 这一 那一 上一 下一 前一 后一 哪一 有朝一日 "
        "另一个 每一个 某一个 任何一个 这一个 上一个 下一个 上一周 下一周 上一年 上一季度 下一季度 上一期 下一步 下一阶段 上一轮 新一轮 这一轮 每一次 每一位 每一天 这一点 这一天 这一数字 这一趋势 某一天 唯一一个 "
        "十分 万分 百般 千万 十足 百分百 万能 万般 亿万 千古 万古 一一 三三两两 万里 半点 百年 千年 "
        # two-character and longer fixed nouns
        "两会 两岸 两者 两极 两侧 两端 两旁 两难 两面 两地 两市 两翼 二者 三者 四者 二手 二手车 二手房 二维码 二维 三维 三角 三角洲 三明治 三亚 三星 三峡 三元 三农 三包 三方 三伏 三国 "
        "四川 四季 四周 四处 四方 四肢 四大 四通 五官 五金 五角 五角大楼 五粮液 五险一金 五星级 四星级 三星级 五星 六安 六合 七夕 七匹狼 八卦 八达岭 八方 八成新 九江 九寨沟 九龙 九州 十堰 十字 十字路口 "
        "百度 百货 百姓 百科 百事 百合 百强 百家 百花 百胜 千里马 千岛湖 千禧 千家 千方 千亿级 万科 万达 万事 万物 万岁 万象 万州 万家 万众 万豪 万国 万科 万一 两江 一汽 二汽 三一 三一重工 一加 五菱 七牛 九鼎 九阳 六福 三全 三只松鼠 一嗨 "
        "双一流 双十一 双十二 六一 五一 十一黄金周 五四 七一 八一 十一假期 五一假期 初一 初二 初三 高一 高二 高三 大一 大二 大三 大四 老三 老二 小三 张三 李四 王五 星期一 星期二 星期三 星期四 星期五 星期六 周一 周二 周三 周四 周五 周六 "
        "礼拜一 礼拜二 礼拜三 礼拜四 礼拜五 礼拜六 一等奖 二等奖 三等奖 一等 二等 一级市场 二级市场 一级 二级 三级 四级 五级 六级 十四五 十三五 十二五 十五五 二十大 十九大 三中全会 四中全会 一季报 三季报 一期 二期 三期 一楼 二楼 三楼 一审 二审 终审 二次 二氧化碳 一氧化碳 三聚氰胺 二进制 十进制 一元 一次函数 一哥 二胎 三胎 一孩 二孩 三孩 八股 三七 七七 九一八 五道口 三里屯 四惠 六里桥 一号线 二号线 "
        # idioms of four characters
        "三心二意 一心一意 七上八下 五花八门 四面八方 千方百计 千家万户 万无一失 百花齐放 一举两得 一石二鸟 三番五次 乱七八糟 独一无二 九牛一毛 十全十美 两全其美 成千上万 千变万化 千千万万 丢三落四 接二连三 不三不四 "
        "朝三暮四 举一反三 四舍五入 一五一十 十有八九 八九不离十 五湖四海 四通八达 百折不挠 万众一心 数一数二 一目了然 一帆风顺 一如既往 一蹴而就 一览无余 一席之地 一锤定音 一成不变 千篇一律 千载难逢 千钧一发 千军万马 千辛万苦 万事俱备 "
        "百尺竿头 百年大计 百废待兴 半信半疑 半途而废 一分为二 一针见血 一波三折 一落千丈 一日千里 一鼓作气 一应俱全 一马当先 一往无前 一劳永逸 一知半解 一言难尽 一概而论 一窝蜂 两败俱伤 进退两难 三思而行 三言两语 三长两短 四平八稳 四分五裂 五光十色 "
        "六神无主 七嘴八舌 七零八落 七拼八凑 八面玲珑 九死一生 九霄云外 十拿九稳 十万火急 百里挑一 百战百胜 百发百中 百感交集 千头万绪 千差万别 千丝万缕 万象更新 万紫千红 包罗万象 瞬息万变 以防万一 始终如一 表里如一 言行不一 参差不齐 首屈一指 略胜一筹 更上一层楼 "
        "毁于一旦 付之一炬 昙花一现 焕然一新 耳目一新 大吃一惊 可见一斑 沧海一粟 五味杂陈 三令五申 再三 再一次 又一次 一次次 一步步 一天天 一年一度 一丝不苟 一模一样 一塌糊涂 一触即发 一发不可收拾 一线生机 一臂之力 一技之长 一己之力 一视同仁 二话不说 三点一线 "
        "两码事 一码事 一回事 一口气 其三 其四 其五 一分钱一分货 一分钱 一分耕耘 一条龙 一盘棋 一刀切 一把抓 一窝 一霎 一刹那 一时间 一夜之间 一夜 万元户 百日 一周岁 半导体 半岛 半径 半成品 半数以上议员 下一代 新一代 上一代 老一辈 一辈子 一生 一身 一肩 一头雾水 一方水土"
    ).split()
)
"""Chinese expressions, each covering its numerals whole."""

CHINESE_LONGEST = max(map(len, CHINESE))

CHINESE_EXCEPT: dict[str, str] = {
    "十分": "钟之", "四季": "度报", "一点": "零一二三四五六七八九半", "万一": "千百", "半点": "钟", "千万": "元美欧日港吨人级辆台户架次件股", "百年": "", "一周": "", "一级": "",
    "一期": "", "一行": "", "一项重要": "", "三方": "", "一批": "", "四大": "", "一段": "", "二次": "", "三国": "", "一线": "", "五星": "", "百日": "", "一路": "", "一代": "",
}  # fmt: skip
"""Characters after an expression that undo it (`十分钟` is ten minutes)."""

CHINESE_ARTICLE = (
    r"一(?:个|项|种|名|位|家|件|次|条|份|场|款|股|座|张|轮|大|组|套)(?:非常|比较|相对|更加|更为|更|十分|较为|较|很|最|又一个|值得|显著|明显)?"
    r"(?:问题|原因|方面|例子|重要|主要|新|好|大|小|明显|关键|值得|典型|信号|趋势|特点|亮点|过程|阶段性|机会|挑战|目标|角度|层面|现象|结论|事实|因素|方向|平台|体系|"
    r"整体|独立|完整|真正|人们|简单|比较|复杂|特殊|共同|全新|可能|解释|前提|条件|基础|选择|办法|方案|思路|概念|标志|里程碑|缩影|窗口|突破口|拐点|转折|"
    r"的|是|不|没有|有效|积极|良好|长期|持续|系统|艰巨|重大|战略|核心|普遍|奇迹|样本|开始|起点|终点|谜|意外|负责|专业|知名|领先|大型|小型|工作|任务|制度|举措|政策|事|极|巨大|严重|艰难|重磅|强劲|深刻|关注|参考|借鉴|说法|观点|声音|词|话)"
)
"""一 + classifier as an indefinite article: what follows names no countable thing."""
