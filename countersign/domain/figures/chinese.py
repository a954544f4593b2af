"""Numbers written in Chinese characters: 十二, 两个, 百分之三十五, 三成, 二〇二六年, 第一, 一半, 翻倍.

Apart from English because there are no spaces: a number is told from a word that merely holds 一 or 万 by a list of
such words. A listed word counts as a word only where no further numeral touches it, so 三万一千 stays a number although
万一 is listed. Vague amounts (几个, 数十, 十多) name no number: they look like one and are handed back unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from countersign.domain.figures.found import EXACT, LONGEST, FoundNumber
from countersign.domain.figures.units import TENTHS, UNIT_AFTER, canonical_unit

_VALUES = dict(zip("零〇○一二两三四五六七八九", (0, 0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_FINANCIAL = dict(zip("壹贰叁肆伍陆柒捌玖拾佰仟萬億", "一二三四五六七八九十百千万亿", strict=True))
_TENS = {"千": 3, "百": 2, "十": 1}
_SECTIONS = {"亿": 8, "万": 4}
_DIGIT = "".join(_VALUES)
_NUMERAL = _DIGIT + "十百千万亿"

_NO_NUMBERS = """
    一些 一般 一致 统一 唯一 一定 一直 一样 一起 一旦 一方面 一方 一向 一贯 一切 一律
    一并 一度 一时 一时间 一经 一体化 一体 一线 一流 一手 一道 一同 一概 一概而论 一再 一味
    一系列 一路 一下 一点 一旁 一边 一面 一共 一带 一番 一来 一早 一举 一应 一一 一如
    同一 单一 某一 每一 任一 另一 这一 那一 哪一 下一 上一 进一步 万一 逐一 不一 划一
    专一 独一无二 之一 第三方 第三者 再三 三角 三明治 三亚 三星 四川 四周 四处 五金 五官 七夕
    八卦 九州 十足 百货 百姓 百科 百度 百分比 百分率 百分点 千克 千米 千瓦时 千瓦 千方百计 万分
    万达 万科 万象 千万不 千万别 千万要 二手 二维码 二氧化碳 两者 两极 零售 零件 零部件 零食 零散
    零星 零钱 清零 归零 半导体 半径 半岛 半成品 几乎 几何 几率 周一 周二 周三 周四 周五
    周六 星期一 星期二 星期三 星期四 星期五 星期六 礼拜一 礼拜二 礼拜三 礼拜四 礼拜五 礼拜六
"""
"""Words that hold a numeral and name no number: 一 as "some, same, whole, once it happens", names, days of the week."""
_VERY = f"(?<![{_NUMERAL}])十分(?![钟之])"
"""十分 means very much; 十分钟 is ten minutes."""


def _word_pattern(word: str) -> str:
    before = f"(?<![{_NUMERAL}分])" if word[0] in _NUMERAL else ""
    after = f"(?![{_NUMERAL}])" if word[-1] in _NUMERAL else ""
    return before + word + after


_LONGEST_FIRST = sorted(_NO_NUMBERS.split(), key=len, reverse=True)
_WORDS = re.compile("|".join([*(_word_pattern(word) for word in _LONGEST_FIRST), _VERY]))
_COUNTED = "个名家次天年月周笔条项件倍成万千百十种位"
_VAGUE = re.compile(
    rf"(?:[数几好]|(?<!以)上)[十百千万亿]+|[数几好][倍成折]|对折|腰斩|拦腰|折半|[双个]位数|"
    rf"[{_NUMERAL}]{{1,20}}[几多余](?![{_NUMERAL}])|成百上千|成千上万|[俩仨廿卅卌]|[好十]?几(?=[{_COUNTED}])"
)
_HALVES = {"一半": "0.5", "半数": "0.5", "过半": "0.5", "减半": "0.5", "大半": "0.5", "对半": "0.5", "半": "0.5"}
_DOUBLES = {"翻倍": "2", "倍增": "2", "翻番": "2", "翻了一番": "2", "翻一番": "2", "加倍": "2", "双倍": "2"}
_STANDING = re.compile("|".join(sorted(_HALVES | _DOUBLES, key=len, reverse=True)))
_SHARE = re.compile(rf"(?P<sign>负)?(?P<below>[{_NUMERAL}]{{1,20}})分之(?P<above>[{_NUMERAL}]+(?:点[{_DIGIT}]+)?)")
_NUMBER = re.compile(
    rf"(?P<sign>负)?(?P<nth>第)?(?P<whole>[{_NUMERAL}]+)(?:点(?P<part>[{_DIGIT}]+))?(?P<scale>[万亿]+)?(?P<unit>{UNIT_AFTER})?"
)
_FORMAL = re.compile(rf"[{''.join(_FINANCIAL)}零]{{2,}}|[壹贰叁肆柒捌玖佰仟]")


def chinese(text: str) -> Iterator[FoundNumber]:
    """Every number in Chinese characters in a plain text; what is vague or oddly built is handed back unread."""
    words = [match.span() for match in _WORDS.finditer(text)]
    for found in _characters(text):
        if not any(start <= found.start < end for start, end in words):
            yield found


def _characters(text: str) -> Iterator[FoundNumber]:
    for match in _VAGUE.finditer(text):
        yield FoundNumber(match.start(), match.end(), match.group())
    for match in _SHARE.finditer(text):
        yield _share(match)
    for match in _NUMBER.finditer(text):
        yield _number(match)
    for match in _STANDING.finditer(text):
        value = (_HALVES | _DOUBLES)[match.group()]
        place = (match.start(), match.end(), match.group())
        yield FoundNumber(*place, Decimal(value), decimals=0 if value == "2" else None)
    for match in _FORMAL.finditer(text):
        plain = "".join(_FINANCIAL.get(letter, letter) for letter in match.group())
        yield _found(match, _whole(plain))


def _found(match: re.Match[str], value: int | None) -> FoundNumber:
    return FoundNumber(match.start(), match.end(), match.group(), None if value is None else Decimal(value))


def _share(match: re.Match[str]) -> FoundNumber:
    above, below = _decimal(match["above"]), _whole(match["below"])
    if above is None or not below:
        return _found(match, None)
    percent = match["below"] == "百"
    value = above[0] if percent else EXACT.divide(above[0], Decimal(below))
    signed = value.copy_negate() if match["sign"] else value
    decimals, unit = (above[1], "%") if percent else (None, "")
    place = (match.start(), match.end(), match.group())
    return FoundNumber(*place, signed, unit, decimals=decimals, signed=bool(match["sign"]))


def _decimal(characters: str) -> tuple[Decimal, int] | None:
    """Value and decimals of 三十五 or 三点五."""
    whole, _, part = characters.partition("点")
    value = _whole(whole)
    if value is None:
        return None
    digits = "".join(str(_VALUES[letter]) for letter in part)
    return Decimal(f"{value}.{digits or 0}") if digits else Decimal(value), len(digits)


def _number(match: re.Match[str]) -> FoundNumber:
    read = _decimal(match["whole"] + (f"点{match['part']}" if match["part"] else ""))
    if read is None:
        return _found(match, None)
    unit = (match["unit"] or "").strip()
    tenths = 1 if unit == TENTHS else 0
    power = sum(_SECTIONS[letter] for letter in match["scale"] or "") + tenths
    value = EXACT.scaleb(read[0], power)
    unit = "" if unit == "年" and len(match["whole"]) == 4 and value > 999 else canonical_unit("%" if tenths else unit)
    scale = power + (0 if match["part"] else _ending(match["whole"]))
    signed = value.copy_negate() if match["sign"] else value
    place = (match.start(), match.end(), match.group())
    return FoundNumber(*place, signed, unit, scale, read[1], bool(match["sign"]), match["nth"] is not None)


def _ending(characters: str) -> int:
    """The power of ten that the number is shown to: 4 for 十二万, 12 for 三万亿, 3 for 五千."""
    sections = re.search(r"[万亿]*$", characters)
    power = sum(_SECTIONS[letter] for letter in sections.group()) if sections else 0
    return power or (3 if characters.endswith("千") else 0)


def _whole(characters: str) -> int | None:
    """The integer that the characters name, by place (二〇二六) or by unit (两百零六); None when they name none."""
    if len(characters) > LONGEST:
        return None
    for letter, power in _SECTIONS.items():
        if letter in characters:
            above, _, below = characters.rpartition(letter)
            return _sum(_whole(above) if above else 1, 10**power, _lower(below))
    if all(letter in _VALUES for letter in characters):
        return int("".join(str(_VALUES[letter]) for letter in characters))
    return _section(characters)


def _sum(above: int | None, unit: int, below: int | None) -> int | None:
    return None if above is None or below is None or below >= unit else above * unit + below


def _lower(characters: str) -> int | None:
    """What follows a unit: nothing, or a number by units. 三万二 says 32000 to some and is not read."""
    if characters and characters[0] not in "零〇○" and all(letter in _VALUES for letter in characters):
        return None
    return _whole(characters) if characters else 0


def _section(characters: str) -> int | None:
    """The integer below ten thousand that digits with 千百十 name in falling order."""
    letter = next(letter for letter in _TENS if letter in characters)
    above, _, below = characters.partition(letter)
    times = _VALUES.get(above.lstrip("零〇○")) if above else 1
    return _sum(times, 10 ** _TENS[letter], _VALUES[below] if letter == "十" and below in _VALUES else _lower(below))
