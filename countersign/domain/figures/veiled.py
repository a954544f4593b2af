"""What says a number without being one that can be read: `a fortnight`, `XL percent`, `f o u r`, `l,OOO`, `vier`, ⚃.

Apart from the readers of numbers because nothing here has a value: all of it is handed back unread. Beside lists of
words there is one net: a unit or scale word with no readable number before it stands for a number nobody checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from countersign.domain.figures.found import FoundNumber
from countersign.domain.figures.units import ISO_4217

_WORDS = """
    hat-tricks? century centuries millenni(?:um|a) myriads? fortnight(?:s|ly)? lakhs? lacs? crores? googol zilch mln
    mio bln bn mrd mlrd trn quadrillions? quintillions? threescore fourscore teens twenties thirties forties fifties
    sixties seventies eighties nineties (?:single|double|triple)-digits? baker's_dozen umpteen(?:th)?
    scores?_of(?=_[a-z]) a_score(?!_of) (?:one|half_a)_score a_gross(?!_[a-z]) gross_of brace_of
    grands?(?!_(?:totals?|sums?)) [a-z]*(?:million|billion|trillion)(?!s?[^a-z]|s?$)[a-z]*
    [a-z]+(?:million|billion|trillion)s? [a-z]+per_?cent
    (?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)(?:month|week|day|year|hour|pence|pack|score)[a-z]*
"""
_FOREIGN = """
    eins zwei drei vier fünf fuenf sechs sieben acht neun zehn elf zwölf zwoelf dreizehn vierzehn fünfzehn sechzehn
    siebzehn achtzehn neunzehn zwanzig dreißig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig hundert
    tausend dutzend [a-zäöüß]*und(?:zwan|drei|vier|fünf|sech|sieb|acht|neun)[zß]ig [a-zäöüß]+(?:hundert|tausend)
    million(?:en|es)? milliarden? hälfte viertel drittel prozent verdoppelt halbiert deux trois quatre cinq huit
    neuf dix onze douze treize quatorze quinze seize vingt trente quarante cinquante soixante quatre-vingts? mille
    milliards? moitié douzaine centaines? pourcent doublé triplé dos tres cuatro cinco seis siete ocho nueve diez
    doce trece catorce veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien ciento millones millón
    mitad docena duplicado uno tre quattro cinque nove dieci undici dodici venti trenta quaranta cinquanta sessanta
    settanta ottanta novanta cento mila milioni metà dois três quatro sete oito dez doze vinte trinta cinquenta
    sessenta oitenta cem milhão milhões twee drie vijf zeven negen tien twaalf twintig dertig veertig vijftig
    honderd duizend
"""
"""Number words of the languages that share the Latin letters, for no other script is let into a report."""
_STANDS = re.compile(
    rf"(?<![\w-])(?:{'|'.join(word.replace('_', ' ') for word in _WORDS.split())}"
    rf"|{'|'.join(_FOREIGN.split())})(?![\w])",
    re.IGNORECASE,
)
_BEFORE_PERCENT = """
    all also an and are as at average be both but by change changes each expressed for from given growth here in
    into is margin margins mean means measured monthly no not of only or other per plus rate rates share shares
    shown stated than that the their these this those to total under unit units was were where which with without
    yearly annual
"""
"""Words that stand before `percent` where no number does: `in percent`, `growth percent`."""
_PERCENT = re.compile(
    rf"(?<![\w.,])(?!(?:{'|'.join(_BEFORE_PERCENT.split())})\b)[A-Za-z][A-Za-z0-9_]*(?:[.,][A-Za-z0-9_]+)*\s*"
    r"(?:[%‰]|(?<=\s)(?:per\s?cent|percentage\spoints?|pp|bps|basis\spoints?)(?!\w))",
    re.IGNORECASE,
)
_ZEROS = r"(?=[lI]*[oO])[lIoO]+(?:[.,][lIoO]{3})*|[lIoO]{1,3}(?:,[lIoO]{3})+"
_ROMAN = r"(?=[ivxlcdm])m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_MONEY = rf"(?:{'|'.join(sorted(ISO_4217))}|dollars?|euros?|pounds?|yuan|yen|[$€£¥])"
_LETTERS = re.compile(
    rf"(?<![\w.,])(?:(?:(?:{_ZEROS})\s*|(?i:{_ROMAN})(?<=[ivxlcdmIVXLCDM])\s+){_MONEY}(?!\w)|(?:{_MONEY}\s?(?:{_ZEROS})|[$€£¥]\s?[lI]+)(?!\w)"
    r"|[lI]+O[lIO]*(?!\w)|OO+(?!\w)|[lIoO]{1,3}(?:,[lIoO]{3})+(?!\w))"
)
"""Letters that draw digits or are Roman ones, beside money or by their own look."""
_SPACED = re.compile(r"(?<![\w'’])[A-Za-z](?:[ ._·-][A-Za-z]){2,}(?!\w)")
_SPELT = re.compile(
    r"zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twel|teen|twenty|thirty|forty|fifty|hundred|thousand"
    r"|million|billion|half|third|quarter|double|triple|twice|dozen|score|gross|percent",
    re.IGNORECASE,
)
"""What a run of single letters may spell, whatever letters stand before and after it."""
_PICTURES = re.compile(
    "[\u2680-\u2685\u2800-\u28ff\u4dc0-\u4dff\U0001d300-\U0001d356\U0001f000-\U0001f0ff\U0001f550-\U0001f567"
    "\u2630-\u2637🔟💯🥇🥈🥉🎱]"
)
"""Dice, Braille, hexagrams, tetragrams, tiles with playing cards, clock faces, trigrams, and single ones."""


def veiled(text: str) -> Iterator[FoundNumber]:
    """Everything in a plain text that stands for a number and cannot be read as one."""
    for pattern in (_STANDS, _PERCENT, _LETTERS):
        for match in pattern.finditer(text):
            yield FoundNumber(match.start(), match.end(), match.group())
    for match in _SPACED.finditer(text):
        if _SPELT.search(match.group()[::2]):
            yield FoundNumber(match.start(), match.end(), match.group())


def is_picture(letter: str) -> bool:
    """Whether a symbol draws a number although Unicode does not call it one."""
    return _PICTURES.match(letter) is not None
