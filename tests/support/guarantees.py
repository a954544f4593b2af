"""The pytest plugin behind `make guarantees`: one line per promise, `G14 pass 3 tests` or `G14 fail 1 of 3 tests`.

It stands apart so that ordinary test runs do not carry it: `pytest -m guarantee -p tests.support.guarantees`. With
`--require-guarantees`, which a run of all tests is given, a required promise without a test fails too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

KNOWN = frozenset(f"G{number:02d}" for number in range(1, 48))
REQUIRED = frozenset("G14 G15 G16 G17 G18 G19 G21 G24 G26 G31 G32 G33 G34 G36 G39 G40 G42 G43 G44 G45 G46 G47".split())
"""What this version promises: each needs a test, or a promise would vanish from the table with its last one."""
OPTION = "--require-guarantees"
PROPERTY = "guarantee"
"""The name under which a test's reports carry its promises."""


class GuaranteeTable:
    """Which tests prove which promise, and which of them passed in every phase."""

    def __init__(self, required: frozenset[str]) -> None:
        self._tests: dict[str, set[str]] = defaultdict(set, {guarantee: set() for guarantee in required})
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let each test's reports carry its promises, to whichever process prints; an unknown id stops the run."""
        for item in session.items:
            for guarantee in guarantees_of(item.iter_markers("guarantee")):
                if guarantee not in KNOWN:
                    raise pytest.UsageError(f"{item.nodeid}: {guarantee!r} is no guarantee; use G01 to G47.")
                item.user_properties.append((PROPERTY, guarantee))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a result: a test that did not run to its end, a skipped one too, proves nothing."""
        for name, guarantee in report.user_properties:
            if name == PROPERTY:
                self._tests[str(guarantee)].add(report.nodeid)
        if not report.passed:
            self._failed.add(report.nodeid)
        elif report.when == "call":
            self._passed.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        terminalreporter.ensure_newline()
        for line in self.lines():
            terminalreporter.write_line(line)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Make the exit code say so where a test was skipped or is missing, which pytest itself counts as success."""
        proven = self._passed - self._failed
        kept = all(tests and tests <= proven for tests in self._tests.values())
        if session.exitstatus == pytest.ExitCode.OK and not kept:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def lines(self) -> list[str]:
        """The table, one promise a line, in the promises' order."""
        proven = self._passed - self._failed
        return [guarantee_line(name, len(tests), len(tests - proven)) for name, tests in sorted(self._tests.items())]


def guarantees_of(markers: Iterable[pytest.Mark]) -> list[str]:
    """The ids that a test's marks name."""
    return [str(guarantee) for marker in markers for guarantee in marker.args]


def guarantee_line(name: str, tests: int, failed: int) -> str:
    """One line of the table."""
    if not tests:
        return f"{name} fail 0 tests"
    noun = "test" if tests == 1 else "tests"
    return f"{name} fail {failed} of {tests} {noun}" if failed else f"{name} pass {tests} {noun}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for runs of all tests; a selection of files or names has not all promises in it."""
    parser.addoption(OPTION, action="store_true", help="fail where a required guarantee has no test")


def pytest_configure(config: pytest.Config) -> None:
    """Register the table for this run."""
    required = REQUIRED if config.getoption(OPTION) else frozenset()
    config.pluginmanager.register(GuaranteeTable(required), "guarantee-table")
