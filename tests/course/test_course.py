"""No course of messages, clock steps and restarts takes a run where design.md's table does not (G24 to G30).

Courses are made at random, played on the real workflow with the real ledger and gateway on the server whose clock
jumps, and compared after every step with a model that was written by hand. `make test` plays a few; `make course` plays
500, and ROUNDS=n as many as a night has room for; COURSE_FIRST=n in the environment begins with others.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.course.course import Course
from tests.course.legal import ILLEGAL, LEGAL, wrong_steps
from tests.course.model import Model
from tests.course.recorded import Stranded
from tests.course.stage import TENANT, Stage
from tests.course.steps import STEPS
from tests.course.steps import Step as CourseStep
from tests.course.terms import PEOPLE, TERMS
from tests.course.values import Said
from tests.support.skipping import skipping_installation

COURSES = int(os.environ.get("COURSE_ROUNDS", "8"))
FIRST = int(os.environ.get("COURSE_FIRST", "0"))
SLOW = st.sampled_from([False] * 5 + [True])


class Theatre:
    """Has a stage for the next course: the same one as long as all goes well, and a new one after a failure."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = self.lost = 0
        self._loop = asyncio.Runner()
        self._open: AsyncExitStack | None = None
        self._stage: Stage | None = None

    def play(self, policy: str, steps: list[CourseStep], *, slow: bool) -> str | None:
        """Play one course; returns the state that it came to, nothing if the test server has lost it twice."""
        for _ in range(2):
            try:
                return self._loop.run(self._play(policy, steps, slow=slow))
            except Stranded:
                self._loop.run(self._leave())
            except BaseException as error:
                error.add_note(f"in the course {policy}, {slow=}, {steps}")
                self._loop.run(self._leave())
                raise
        self.lost += 1
        assert self.lost <= 3 + COURSES // 10, f"the test server has lost {self.lost} courses, each twice"
        return None

    async def _play(self, policy: str, steps: list[CourseStep], *, slow: bool) -> str:
        if self._stage is not None and self._stage.spent:
            await self._leave()
        stage = self._stage or await self._opened()
        stage.adopt(policy)
        course = Course(stage, policy)
        await course.play(steps, slow=slow)
        return course.model.state

    async def _opened(self) -> Stage:
        self.count += 1
        self._open = AsyncExitStack()
        skipping = await self._open.enter_async_context(skipping_installation(self.folder / f"home-{self.count}"))
        self._stage = Stage(skipping)
        self._open.push_async_callback(self._stage.close)
        self._stage.successor()
        await self._stage.work()
        return self._stage

    async def _leave(self) -> None:
        """Close the stage, once the whole record of its courses has been verified."""
        if self._stage is not None and self._open is not None:
            self._stage.ledger.audit.verify(TENANT)
            self._stage = None
            await self._open.aclose()

    def close(self) -> None:
        """Stop everything."""
        self._loop.run(self._leave())
        self._loop.close()


@pytest.fixture
def theatre(tmp_path: Path) -> Iterator[Theatre]:
    """One server and one ledger for all courses."""
    made = Theatre(tmp_path)
    yield made
    made.close()


@pytest.mark.timeout(6 * 3600)
@pytest.mark.guarantee("G24")
@pytest.mark.guarantee("G26")
@pytest.mark.guarantee("G27")
@pytest.mark.guarantee("G28")
@pytest.mark.guarantee("G29")
@pytest.mark.guarantee("G30")
def test_every_course_is_as_the_model_says(theatre: Theatre, capsys: pytest.CaptureFixture[str]) -> None:
    """After every step, whatever it was."""
    ends: Counter[str] = Counter()

    def play(policy: str, steps: list[CourseStep], slow: bool) -> None:
        end = theatre.play(policy, steps, slow=slow) if steps else None
        if end is not None:
            ends[end] += 1

    for number, policy in zip(itertools.count(FIRST), itertools.cycle(TERMS), strict=False):
        if ends.total() == COURSES:
            break
        # One after the other: of many at once hypothesis makes most out of parts of those before. The first example is
        # always the shortest, a course without steps.
        one = settings(max_examples=2, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        hypothesis.seed(number)(one(given(policy=st.just(policy), steps=STEPS, slow=SLOW)(play)))()
    with capsys.disabled():
        lost = f"lost_by_test_server={theatre.lost}"
        print(f"\ncourse runs={ends.total()} disagreements=0 {lost} ends={dict(sorted(ends.items()))}")


# The model itself.


_MOVES = st.tuples(
    st.sampled_from([0, 1, 59, 60, 600, 3600, 86_400]),
    st.sampled_from(PEOPLE),
    st.sampled_from(
        "approve reject edit take_over amend grade propose release hand_over withdraw supersede cancel garbage "
        "nothing nothing nothing away".split()
    ),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from(PEOPLE),
)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(policy=st.sampled_from(sorted(TERMS)), moves=st.lists(_MOVES, max_size=40))
def test_no_illegal_transition_ever_occurs(policy: str, moves: list[tuple[int, str, str, int, str]]) -> None:
    """Not one of the named ones, nor any other that the table does not have; nor an effect without a grant."""
    model, now = Model(TERMS[policy]), datetime(2026, 1, 1, tzinfo=UTC)
    for seconds, who, kind, stale, to in moves:
        now += timedelta(seconds=seconds)
        model.pass_to(now)
        if kind != "nothing":
            seen = (len(model.asks) - stale, model.version - stale, len(model.drafts) - stale)
            model.hear(Said(who, kind, *seen, to=to), now)
        if kind != "away":
            model.agent_moves(now)
        assert wrong_steps(model.trail) == []
        assert model.published == sum(state == "SUCCEEDED" for state, _ in model.trail) <= 1
        granted = [ask for ask in model.asks if ask.status == "consumed"]
        assert all(len(set(ask.votes)) == TERMS[policy].approvals for ask in granted)


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_transitions_are_told_by_name(name: str) -> None:
    """Each is seen where it occurs, so that no course can have one."""
    before, after = ILLEGAL[name]
    assert after not in LEGAL[before]
    assert wrong_steps([(before, ""), (after, "")]) == [(before, after)]
