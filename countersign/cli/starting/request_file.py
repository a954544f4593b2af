"""What a requester hands in: a request file, options, or both; every field once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from countersign.domain.channel import ChannelName
from countersign.domain.draft import Question
from countersign.domain.errors import ConfigurationRefused, InputRefused
from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.refund import OutsideId, RefundRequest
from countersign.domain.report import DatasetSchema, Period, ReportRequest, Title
from countersign.domain.strict_json import parse as parse_json
from countersign.domain.values import Value
from countersign.strict_yaml import parse as parse_yaml
from countersign.strict_yaml import validated

MAX_FILE = 64 * 1024
NO_DATA = "sha256:" + "0" * 64
OPTIONS = {"requester": "--as", "message_channel": "--message-channel"}
"""Where an option is spelled otherwise than its field."""


class Order(Value):
    """The fields of a request file for a report; the options of `start` have the same names."""

    case: Literal["report"] = "report"
    tenant: TenantId
    requester: PersonId
    operation: OperationId | None = None
    question: Question
    title: Title = ""
    period: Period = ""
    channel: ChannelName
    language: Annotated[str, Field(min_length=2, max_length=2)] = "en"
    data: Annotated[str, Field(min_length=1, max_length=1_000)]
    """The dataset's path; in a request file it is meant from that file's folder."""
    schema_: Annotated[str, Field(alias="schema", max_length=1_000)] = ""
    """The schema file's path. A column that no schema names is read as a whole: numbers, dates or text, where all its
    values are plainly that; anything in between is refused."""

    @property
    def asks(self) -> str:
        """What is asked, in the requester's words."""
        return self.question


class RefundOrder(Value):
    """The fields of a request file for a refund."""

    case: Literal["refund"]
    tenant: TenantId
    requester: PersonId
    operation: OperationId | None = None
    order: OutsideId
    complaint: Question
    channel: ChannelName
    message_channel: ChannelName | None = None
    language: Annotated[str, Field(min_length=2, max_length=2)] = "en"

    @property
    def asks(self) -> str:
        """What the customer complains about."""
        return self.complaint


FORMS: Mapping[str, type[Order] | type[RefundOrder]] = {"report": Order, "refund": RefundOrder}
"""What can be asked for, by case; one that is not named is the first."""


def read_order(file: Path | None, options: Mapping[str, str | None]) -> Order | RefundOrder:
    """The order of its case from a request file, options, or both.

    Raises:
        InputRefused: naming the field that is missing, misspelt, wrong, given twice, or another case's.
    """
    given = {name: value for name, value in options.items() if value is not None}
    fields = {} if file is None else _placed(_mapping(file), file)
    twice = sorted(set(fields) & set(given))
    if twice:
        raise InputRefused(f"{_option(twice[0])}: {file} gives {twice[0]!r} already; give it in one place only")
    form = _form({**fields, **given}, given, str(file or "start"))
    try:
        return validated({**fields, **given}, form, where=str(file or "start"))
    except ConfigurationRefused as refused:
        raise InputRefused(_named_by_option(refused.message) if file is None else refused.message) from None


def read_schema(file: Path) -> DatasetSchema:
    """The schema file; InputRefused names the field."""
    try:
        return validated(_mapping(file), DatasetSchema, where=str(file))
    except ConfigurationRefused as refused:
        raise InputRefused(refused.message) from None


def request_of(order: Order, schema: DatasetSchema) -> ReportRequest:
    """The case's own request, with the hash of the data still to be set."""
    fields = {
        "question": order.question, "title": order.title, "period": order.period, "channel": order.channel,
        "language": order.language,
        "dataset": {"sha256": NO_DATA, "name": Path(order.data).name, "schema": schema.model_dump(mode="json")},
    }  # fmt: skip
    try:
        return validated(fields, ReportRequest, where="request")
    except ConfigurationRefused as refused:
        raise InputRefused(refused.message) from None


def refund_request_of(order: RefundOrder) -> RefundRequest:
    """The case's own request."""
    fields = order.model_dump(include=set(RefundRequest.model_fields), exclude_none=True)
    try:
        return validated(fields, RefundRequest, where="request")
    except ConfigurationRefused as refused:
        raise InputRefused(refused.message) from None


def _form(fields: Mapping[str, Any], given: Mapping[str, str], where: str) -> type[Order] | type[RefundOrder]:
    """The form of the case that is asked for, which has every option that is given."""
    case = fields.get("case", next(iter(FORMS)))
    form = FORMS.get(case) if isinstance(case, str) else None
    if form is None:
        raise InputRefused(f"{where}: case: nobody can ask for {str(case)[:40]!r} so; allowed: {', '.join(FORMS)}")
    for name in given:
        if name not in _names(form):
            others = ", ".join(other for other in FORMS if name in _names(FORMS[other]))
            raise InputRefused(f"{where}: {_option(name)}: a {case} has none; it is for --case {others}")
    return form


def _names(form: type[Order] | type[RefundOrder]) -> set[str]:
    """The fields of a form as files and options spell them."""
    return {field.alias or name for name, field in form.model_fields.items()}


def _mapping(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE + 1)
    except OSError as error:
        raise InputRefused(f"{file}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_FILE:
        raise InputRefused(f"{file}: larger than the {MAX_FILE} bytes that are allowed")
    fields = _parsed(data, file)
    if not isinstance(fields, dict):
        raise InputRefused(f"{file}: holds no fields; write one `name: value` a line")
    return fields


def _parsed(data: bytes, file: Path) -> Any:
    if file.suffix == ".json":
        return parse_json(data, where=str(file))
    try:
        return parse_yaml(data, where=str(file))
    except ConfigurationRefused as refused:
        raise InputRefused(refused.message) from None


def _placed(fields: dict[str, Any], file: Path) -> dict[str, Any]:
    """The same with the paths meant from where the command runs."""
    placed = {name: str(file.parent / path) for name in ("data", "schema") if isinstance(path := fields.get(name), str)}
    return {**fields, **{name: path for name, path in placed.items() if fields[name]}}


def _option(field: str) -> str:
    return OPTIONS.get(field, f"--{field}")


def _named_by_option(message: str) -> str:
    where, _, rest = message.partition(": ")
    field, _, problem = rest.partition(": ")
    words = "give it, or a request file" if problem.startswith("it is missing") else problem
    return f"{where}: {_option(field)}: {words}"
