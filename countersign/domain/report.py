"""The report case's values: what a requester wants reported, the data that it rests on, and what the agent writes.

Apart from the case, since the agent, which drafts, and the evidence, which is read, know the same forms and not it.
"""

from __future__ import annotations

import operator
import re
from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.channel import ChannelName
from countersign.domain.draft import Question, ShortText, Text
from countersign.domain.values import Sha256, Value

CLAIM_ID_PATTERN = r"[a-z][a-z0-9_]{0,31}"
CLAIM_REFERENCE = re.compile(r"\{\{(" + CLAIM_ID_PATTERN + r")\}\}")
"""How a text refers to a claim: `{{c1}}`. Rendering puts the claim's `shown` there; an agent never types a figure."""

Title = Annotated[str, Field(max_length=300)]
Period = Annotated[str, Field(max_length=200)]


class Claim(Value):
    """One figure in a draft, with the query that produces it from the evidence."""

    id: Annotated[str, Field(pattern=f"^{CLAIM_ID_PATTERN}$")]
    query: Annotated[str, Field(min_length=1, max_length=4_000)]
    """One read-only SELECT over table `data` that yields exactly one row with one column."""
    value: Annotated[str, Field(min_length=1, max_length=120)]
    """The exact result as plain text: `-1234.50`, `42`, `2026-06-30` or a name; never a float, never rounded."""
    unit: Annotated[str, Field(max_length=40)]
    """What the value is counted in: `USD`, `%`, `rows`, `orders`; empty for a name or a date."""
    shown: Annotated[str, Field(min_length=1, max_length=120)]
    """The figure as the reader sees it: `$35.2M`, `-4.2 %`, `1.2万元`, `two`."""


class Draft(Value):
    """A short report. Its text holds no figure of its own: each is a reference to a claim."""

    title: ShortText
    body: Text
    """CommonMark with references `{{claim_id}}`."""
    claims: Annotated[tuple[Claim, ...], Field(strict=False, min_length=1, max_length=60)]
    source: ShortText
    """Which dataset the figures come from, by its file name."""
    period: ShortText
    """Which time the figures cover, or that the data states none."""
    unit: ShortText
    """In what the main figures are counted; says so where there is none."""
    limitations: Annotated[tuple[ShortText, ...], Field(strict=False, min_length=1, max_length=20)]


QUERY_TOOL = "query_dataset"
"""The agent's tool that reads rows; a call of it on a sensitive column waits for a person."""


class DatasetQuery(Value):
    """The arguments of a call of QUERY_TOOL that waits for a person, and of what a person makes of it."""

    sql: Annotated[str, Field(min_length=1, max_length=4_000)]
    """As long as a claim's query at the most, since a person is to read it whole."""


class ReportRequest(Value):
    """What a requester wants reported, and where to."""

    case: Literal["report"] = "report"
    question: Question
    title: Title = ""
    period: Period = ""
    channel: ChannelName
    language: Literal["en", "zh"] = "en"
    dataset: DatasetRef


class DatasetRef(Value):
    """The one dataset a report rests on, by the hash of its bytes."""

    sha256: Sha256
    name: Annotated[str, Field(min_length=1, max_length=200)]
    """The file's own name, without folders."""
    schema_: DatasetSchema = Field(alias="schema")


class NumberFormat(Value):
    """How numbers of a column are written. The default is plain digits with a decimal point."""

    thousands: Literal["", ",", ".", " ", "'", "_"] = ""
    decimal: Literal[".", ","] = "."
    parentheses: bool = False
    """`(12.50)` means -12.50."""
    currency: Annotated[str, Field(max_length=8)] = ""
    """A sign or code that may stand before or after the number: `$`, `€`, `EUR`."""
    percent: bool = False
    """`35 %` is accepted and read as 35 with unit %."""
    unicode_minus: bool = False
    """U+2212 is accepted as a minus sign."""


class ColumnSchema(Value):
    """What one column holds."""

    type: Literal["number", "date", "text"]
    number: NumberFormat = NumberFormat()
    date_order: Literal["iso", "dmy", "mdy"] = "iso"
    """`iso` is 2026-06-30; `dmy` and `mdy` take / . or - between two-digit day and month and a four-digit year."""
    currency: Annotated[str, Field(pattern=r"^([A-Z]{3})?$")] = ""
    """ISO 4217 code of all values of the column, where they are money."""
    currency_column: Annotated[str, Field(max_length=200)] = ""
    """The column that names each row's currency; sums across different currencies are refused."""
    unit: Annotated[str, Field(max_length=40)] = ""
    sensitive: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """An agent reads it only by a query that a person has allowed; its range, samples and counts are not told."""


class DatasetSchema(Value):
    """What is declared about a file; everything that is not declared is read in the strictest form."""

    encoding: Annotated[str, Field(max_length=40)] = "utf-8"
    delimiter: Literal[",", ";", "\t", "|"] = ","
    blank: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[^\s,;|\"]{1,20}$")], ...], Field(strict=False, max_length=10)
    ] = ()
    """Texts that stand for a blank cell, such as `NA`; an empty cell always is one."""
    columns: dict[str, ColumnSchema] = Field(default_factory=dict)
    unique: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(strict=False)] = ()
    """The columns that together identify a row; two rows that are equal in them contradict each other."""


DatasetRef.model_rebuild()
ReportRequest.model_rebuild()
