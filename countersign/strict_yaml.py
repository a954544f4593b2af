"""YAML as people write it for policies, rubrics, schemas and requests, with one meaning per file or a refusal.

Stands beside `domain.strict_json`: YAML needs a library and files, so it cannot lie in `domain`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from countersign.domain import strict_json
from countersign.domain.errors import ConfigurationRefused, InputRefused

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_BYTES = 256 * 1024

_WORDS = {
    "extra_forbidden": "no such field; check the spelling",
    "missing": "it is missing; give it",
    **dict.fromkeys(("model_type", "dict_type"), "write fields, each as `name: value`"),
    **dict.fromkeys(("tuple_type", "list_type", "frozen_set_type"), "write a list, such as [one, another]"),
    "string_type": "write a text, in quotes where it reads as something else",
    **dict.fromkeys(("int_type", "int_from_float"), "write a whole number"),
    "bool_type": "write true or false",
    "literal_error": "write {expected}",
    "greater_than_equal": "write {ge} or more",
    "less_than_equal": "write {le} or less",
    "too_short": "write {min_length} or more of them",
    "too_long": "write {max_length} of them at the most",
    "string_too_short": "write {min_length} or more characters",
    "string_too_long": "write {max_length} characters at the most",
    "string_pattern_mismatch": "the text does not have the form {pattern}",
}
"""What is wrong with a field in plain words, by the validator's own name of it."""

Model = TypeVar("Model", bound=BaseModel)


class _StrictLoader(yaml.SafeLoader):
    """No anchors (one small file can stand for gigabytes), no tags, no duplicate keys, no keys but text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - filled below, as yaml does

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise yaml.constructor.ConstructorError(None, None, "anchors and aliases are not allowed", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.constructor.ConstructorError(None, None, "tags are not allowed", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not text; quote it", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


# What JSON has and nothing else: in YAML 1.1 `no` is false, `010` is 8, `1:30` is 90 and `2026-01-05` is no text.
for _tag, _pattern, _first in (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-0123456789")),
):
    _StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


def load(path: Path, model: type[Model]) -> Model:
    """Read a YAML or JSON file into a strict model.

    Raises:
        ConfigurationRefused: naming the file and the field that is missing, misspelt, empty or wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationRefused(f"{path}: cannot be read: {error.strerror}") from None
    read: Model = _read(data, model, str(path))
    return read


# Every policy is read together with the channels that it may name: the same bytes are read once.
@lru_cache(maxsize=128)
def _read(data: bytes, model: type[BaseModel], where: str) -> Any:
    fields = _parse_json(data, where=where) if where.endswith(".json") else parse(data, where=where)
    return validated(fields, model, where=where)


def parse(data: bytes, *, where: str) -> Any:
    """Plain data (text, numbers, true, false, null, lists, and mappings by text) from YAML, or ConfigurationRefused."""
    if len(data) > MAX_BYTES:
        raise ConfigurationRefused(f"{where}: {len(data)} bytes, at most {MAX_BYTES} are allowed")
    try:
        fields = yaml.load(data.decode("utf-8"), Loader=_StrictLoader)
        strict_json.check_text(fields, where)
    except UnicodeDecodeError as error:
        raise ConfigurationRefused(f"{where}: not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise ConfigurationRefused(f"{where}: nested too deeply") from None
    except yaml.YAMLError as error:
        raise ConfigurationRefused(f"{where}: {_one_line(error)}") from None
    except ValueError:
        raise ConfigurationRefused(f"{where}: a number has too many digits") from None
    except InputRefused as error:
        raise ConfigurationRefused(error.message) from None
    return fields


def validated(fields: Any, model: type[Model], *, where: str) -> Model:
    """Plain data as a strict model; ConfigurationRefused names the first wrong field, a misspelt one before all."""
    try:
        return model.model_validate_json(json.dumps(fields, allow_nan=False))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        detail = min(details, key=lambda each: each["type"] != "extra_forbidden")
        field = ".".join(str(part) for part in detail["loc"]) or "the file"
        raise ConfigurationRefused(f"{where}: {field}: {_in_words(detail)}") from None
    except ValueError as error:
        raise ConfigurationRefused(f"{where}: {error}") from None


def _parse_json(data: bytes, *, where: str) -> Any:
    # JSON is not quite YAML: an emoji that is escaped as two surrogates is one character in JSON only.
    try:
        return strict_json.parse(data, where=where, max_bytes=MAX_BYTES)
    except InputRefused as error:
        raise ConfigurationRefused(error.message) from None


def _in_words(detail: ErrorDetails) -> str:
    # A message of our own can quote what was written, so it is no template.
    words = _WORDS.get(detail["type"])
    return words.format_map(detail.get("ctx", {})) if words else detail["msg"].removeprefix("Value error, ")


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
