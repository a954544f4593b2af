"""YAML as people write it for policies, rubrics, schemas and requests, with one meaning per file or a refusal.

Stands beside `domain.strict_json`: YAML needs a library and files, so it cannot lie in `domain`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from countersign.domain.errors import ConfigurationRefused, CountersignError
from countersign.domain.strict_json import check_text

MAX_BYTES = 256 * 1024

Model = TypeVar("Model", bound=BaseModel)


class _StrictLoader(yaml.SafeLoader):
    """No anchors (one small file can stand for gigabytes), no duplicate keys, no keys but text, no dates by accident."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:  # noqa: D102
        if self.check_event(yaml.AliasEvent):
            raise yaml.constructor.ConstructorError(None, None, "anchors and aliases are not allowed", None)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: D102
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is not text; quote it", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(path: Path, model: type[Model]) -> Model:
    """Read a YAML or JSON file into a strict model.

    Raises:
        ConfigurationRefused: naming the file and the field that is missing, misspelt, empty or wrong.
    """
    try:
        fields = parse(path.read_bytes(), where=str(path))
    except OSError as error:
        raise ConfigurationRefused(f"{path}: cannot be read: {error.strerror}") from None
    return validated(fields, model, where=str(path))


def parse(data: bytes, *, where: str) -> Any:
    """Plain data from YAML bytes, or ConfigurationRefused."""
    if len(data) > MAX_BYTES:
        raise ConfigurationRefused(f"{where}: {len(data)} bytes, at most {MAX_BYTES} are allowed")
    try:
        fields = yaml.load(data.decode("utf-8"), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader that refuses more
        check_text(fields, where)
    except UnicodeDecodeError as error:
        raise ConfigurationRefused(f"{where}: not UTF-8 at byte {error.start}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationRefused(f"{where}: {_one_line(error)}") from None
    except CountersignError as error:
        raise ConfigurationRefused(error.message) from None
    return fields


def validated(fields: Any, model: type[Model], *, where: str) -> Model:
    """Plain data as a strict model; ConfigurationRefused names the first wrong field."""
    try:
        return model.model_validate_json(json.dumps(fields))
    except (TypeError, ValueError) as error:
        if isinstance(error, ValidationError):
            detail = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in detail["loc"]) or "the file"
            raise ConfigurationRefused(f"{where}: {field}: {_allowed(detail['msg'], detail['type'])}") from None
        raise ConfigurationRefused(f"{where}: {error}") from None


def _allowed(message: str, kind: str) -> str:
    return "no such field; check the spelling" if kind == "extra_forbidden" else message


def _one_line(error: BaseException) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
