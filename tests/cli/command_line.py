"""Runs commands as `starter.py` does, in the test's own process, and keeps what they said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.app import run


@dataclass
class Answer:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its standard output as the one JSON document that it has to be."""
        return json.loads(self.out)


@dataclass
class CommandLine:
    """Runs commands in this process, as `starter.py` does."""

    home: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str | Path) -> Answer:
        self.capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = self.capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def done(self, *arguments: str | Path) -> Answer:
        """The same, for a command that has to succeed."""
        answer = self(*arguments)
        assert answer.code == 0, answer
        return answer
