"""The published document: a checked draft as one Markdown text, the same bytes for the same draft and request.

Apart from the checks since this is what gets hashed, reviewed and published. Data never becomes markup here: what a
claim shows is escaped, and a hostile query or value cannot leave its cell of the table of figures.
"""

from __future__ import annotations

import re

from countersign.cases.report.fields import Field, claims_by_id, fields_of
from countersign.cases.report.wording import SECTIONS
from countersign.domain.errors import InputRefused
from countersign.domain.report import CLAIM_REFERENCE, Claim, Draft, ReportRequest
from countersign.domain.visible import is_hidden

_MARKS = re.compile(r"[\\`*_{}\[\]<>&|~#!+=]")
_LINE_START_MARKS = re.compile(r"^(-(?![0-9.])|[0-9]{1,9}(?=[.)](?:\s|$)))")
_BACKTICKS = re.compile(r"`+")


def render_report(draft: Draft, request: ReportRequest) -> str:
    """The Markdown document, ending with one newline.

    Text is kept as it is written (no Unicode normalisation). Raises InputRefused for a reference to no claim: only a
    draft that passed the checks is rendered.
    """
    words = SECTIONS[request.language]
    claims = claims_by_id(draft)
    texts = {field.name: _filled(field, claims) for field in fields_of(draft)}
    limits = [text for name, text in texts.items() if name.startswith("limitations.")]
    blocks = [
        f"# {texts['title']}",
        texts["body"].strip("\n"),
        f"## {words['source']}",
        f"{texts['source']}\n\n{code_span(request.dataset.name)} {code_span(request.dataset.sha256)}",
        f"## {words['period']}",
        texts["period"],
        f"## {words['unit']}",
        texts["unit"],
        f"## {words['limitations']}",
        "\n".join(f"- {limit}" for limit in limits),
        f"## {words['figures']}",
        _table(draft.claims, words["columns"]),
    ]
    return "\n\n".join(blocks) + "\n"


def rendered_title(draft: Draft) -> str:
    """The title as people read it, outside of Markdown; the checks have found every reference's claim."""
    claims = claims_by_id(draft)
    return CLAIM_REFERENCE.sub(lambda match: claims[match[1]].shown, draft.title)


def _filled(field: Field, claims: dict[str, Claim]) -> str:
    def shown(match: re.Match[str]) -> str:
        claim = claims.get(match[1])
        if claim is None:
            message = f"{field.place(match.start())} refers to claim {match[1]!r}, which the draft does not have"
            raise InputRefused(f"{message}; only a checked draft is rendered")
        return plain_text(claim.shown)

    return CLAIM_REFERENCE.sub(shown, field.text)


def _table(claims: tuple[Claim, ...], columns: str) -> str:
    heads = columns.split("|")
    rows = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for claim in claims:
        cells = [code_span(claim.id), *(plain_text(part) for part in (claim.shown, claim.value, claim.unit))]
        rows.append(f"| {' | '.join([*cells, code_span(claim.query).replace('|', chr(92) + '|')])} |")
    return "\n".join(rows)


def plain_text(text: str) -> str:
    """Data as Markdown text: every mark escaped and every hidden character written out, so that none is markup.

    Spaces around it, which no reader sees, are left off: in front they could make a code block.
    """
    escaped = _MARKS.sub(lambda match: "\\" + match.group(), _visible(text).strip(" "))
    return _LINE_START_MARKS.sub(_escaped_marker, escaped)


def _escaped_marker(match: re.Match[str]) -> str:
    return "\\-" if match.group() == "-" else match.group() + "\\"


def code_span(text: str) -> str:
    """Data as a code span on one line, fenced by more backticks than it holds."""
    line = _visible(text)
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(line)), default=0) + 1)
    return f"{fence} {line} {fence}" if len(fence) > 1 or line.startswith(" ") else f"{fence}{line}{fence}"


def _visible(text: str) -> str:
    """`\\u202e` instead of a character that draws nothing; line breaks as `\\n`."""
    lines = text.replace("\n", "\\n")
    return "".join(f"\\u{ord(letter):04x}" if is_hidden(letter) else letter for letter in lines)
