"""How numbers and dates may be written, as regular expressions and as the SQL that reads them exactly.

It stands apart so that what is accepted can be read in one place; the patterns mean the same to DuckDB and Python.
"""

from __future__ import annotations

import re
from pathlib import Path

from countersign.domain.report import NumberFormat

MAX_DIGITS = 38
"""DuckDB's DECIMAL holds this many digits; longer numbers are refused, never rounded."""

PLAIN_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
LEADING_ZERO = r"-?0[0-9]+(?:\.[0-9]+)?"
"""`007`: plain digits, but an identifier; reading it as 7 would lose what it says."""
NEGATIVE_ZERO = r"-0(?:\.0+)?"
ISO_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
LIKE_DATE = r"[0-9]{1,4}([/.-])[0-9]{1,2}[/.-][0-9]{1,4}"
"""What a person would take for a date in some order."""

_SIGN = "[-+\u2212\u2013]"
_MONEY = r"(?:[A-Z]{0,3}[$€£¥₹₽₩₺]|[A-Z]{3})"
_INSIDE = "[0-9.,'_ \u00a0\u202f\u2019]*"
_SPACE = "[ \u00a0\u202f]?"
LIKE_NUMBER = (
    rf"{_SPACE}[(]?{_SIGN}?{_SPACE}(?:{_MONEY}{_SPACE})?[(]?{_SIGN}?{_SPACE}"
    rf"(?:[0-9]{_INSIDE}|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    rf"{_SPACE}[%‰]?{_SPACE}(?:{_MONEY}|kr|zł)?[)]?{_SIGN}?{_SPACE}"
)
"""What a person would take for a number in some format, accounting signs and spaces included."""


def literal(text: str) -> str:
    """`text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def path_literal(path: Path) -> str:
    """`path` as an SQL string literal that names this one file; DuckDB would take `[`, `*` and `?` as a pattern."""
    return literal(re.sub(r"[\[*?]", lambda mark: f"[{mark[0]}]", str(path)))


def identifier(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def matches(text: str, pattern: str) -> str:
    """The SQL that tests whether all of `text` (SQL) matches `pattern`."""
    return f"regexp_full_match({text}, {literal(pattern)})"


def number_pattern(form: NumberFormat, scale: int = MAX_DIGITS) -> str:
    """The regular expression of exactly the numbers that `form` allows, with at most `scale` decimals."""
    separator = re.escape(form.thousands)
    whole = rf"(?:[0-9]{{1,3}}(?:{separator}[0-9]{{3}})+|[0-9]+)" if form.thousands else "[0-9]+"
    digits = rf"{whole}(?:{re.escape(form.decimal)}[0-9]{{1,{scale}}})?" if scale else whole
    tail = " ?%" if form.percent else ""
    sign = "[-\u2212]?" if form.unicode_minus else "-?"
    money = re.escape(form.currency)
    bodies = [rf"{sign}{digits}{tail}"]
    if form.currency:
        bodies += [rf"{sign}{money} ?{digits}{tail}", rf"{money} ?{sign}{digits}{tail}", rf"{sign}{digits} ?{money}"]
    if form.parentheses:
        bodies.append(rf"\({digits}{tail}\)")
        if form.currency:
            bodies += [rf"\({money} ?{digits}\)", rf"{money} ?\({digits}\)", rf"\({digits} ?{money}\)"]
    return "|".join(f"(?:{body})" for body in bodies)


def plain_text(text: str, form: NumberFormat) -> str:
    """The SQL that turns `text` (SQL), which matches `number_pattern(form)`, into plain digits with its sign kept."""
    spaces = " " if form.currency or form.percent else ""
    removed = [form.currency, form.thousands, "%" if form.percent else "", spaces]
    result = text
    for part in filter(None, removed):
        result = f"replace({result}, {literal(part)}, '')"
    if form.decimal != ".":
        result = f"replace({result}, {literal(form.decimal)}, '.')"
    if form.unicode_minus:
        result = f"replace({result}, '\u2212', '-')"
    if form.parentheses:
        bare = f"replace(replace({result}, '(', ''), ')', '')"
        result = f"CASE WHEN contains({text}, '(') THEN concat('-', {bare}) ELSE {result} END"
    return result


def date_pattern(order: str) -> str:
    """The regular expression of dates in `order`; one separator throughout, and four digits for the year."""
    if order == "iso":
        return ISO_DATE
    return "|".join(rf"(?:[0-9]{{2}}{mark}[0-9]{{2}}{mark}[0-9]{{4}})" for mark in ("/", r"\.", "-"))


def iso_text(text: str, order: str) -> str:
    """The SQL that turns `text` (SQL), which matches `date_pattern(order)`, into year-month-day."""
    if order == "iso":
        return text
    first, second = f"substr({text}, 1, 2)", f"substr({text}, 4, 2)"
    day, month = (first, second) if order == "dmy" else (second, first)
    return f"concat(substr({text}, 7, 4), '-', {month}, '-', {day})"


def advice(name: str, value: str) -> str:
    """What to declare for column `name`, in which `value` stands: one line of the schema file."""
    number = [line for mark, line in _ADVICE if re.search(mark, value)]
    if re.fullmatch("[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{4}", value):
        declared = "{type: date, date_order: dmy} (or mdy)"
    elif re.fullmatch(rf".*[0-9]{_SIGN}{_SPACE}", value):
        return f"write the minus sign in front of the number, or declare {name}: {{type: text}}"
    elif re.fullmatch(LIKE_NUMBER, value) and number:
        declared = f"{{type: number, number: {{{', '.join(number)}}}}}"
    elif re.fullmatch("[A-Za-z/.#-]{1,20}", value):
        return f"correct it, declare blank: [{value}] where it means no value, or declare {name}: {{type: text}}"
    else:
        declared = "{type: text}"
    return f"correct it or declare {name}: {declared}"


_ADVICE = (
    (r"[0-9],[0-9]{3}(?![0-9])", 'thousands: ","'),
    (r",[0-9]{1,2}(?![0-9])|,[0-9]{4,}", 'decimal: ","'),
    (r"\.[0-9]{3}\.|\.[0-9]{3},", 'thousands: "."'),
    (r"[0-9]'[0-9]", 'thousands: "\'"'),
    (r"[0-9]_[0-9]", 'thousands: "_"'),
    (r"[0-9] [0-9]", 'thousands: " "'),
    (r"[(]", "parentheses: true"),
    (r"[A-Z$€£¥₹₽₩₺]", "currency: its sign or code"),
    (r"%", "percent: true"),
    ("\u2212", "unicode_minus: true"),
)
