"""What a requester hands in: a request file, options, or both; every field once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from countersign.domain.channel import ChannelName
from countersign.domain.draft import DatasetSchema, Period, Question, ReportRequest, Title
from countersign.domain.errors import ConfigurationRefused, InputRefused
from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.strict_json import parse as parse_json
from countersign.domain.values import Value
from countersign.strict_yaml import parse as parse_yaml
from countersign.strict_yaml import validated

MAX_FILE = 64 * 1024
NO_DATA = "sha256:" + "0" * 64
OPTIONS = {"requester": "--as"}
"""Where an option is spelled otherwise than its field."""


class Order(Value):
    """The fields of a request file; the options of `start` have the same names."""

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


def read_order(file: Path | None, options: Mapping[str, str | None]) -> Order:
    """The order from a request file, options, or both.

    Raises:
        InputRefused: naming the field that is missing, misspelt, wrong, or given twice.
    """
    given = {name: value for name, value in options.items() if value is not None}
    fields = {} if file is None else _placed(_mapping(file), file)
    twice = sorted(set(fields) & set(given))
    if twice:
        raise InputRefused(f"{_option(twice[0])}: {file} gives {twice[0]!r} already; give it in one place only")
    try:
        return validated({**fields, **given}, Order, where=str(file or "start"))
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
