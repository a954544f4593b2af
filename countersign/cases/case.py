"""What a kind of work is to the run: how its request becomes one exact action, what an edit makes of that, and, where
an agent drafts, what the draft is and how it is checked and graded.

Apart from the cases themselves, so that steps and commands know these forms alone; a new case is one more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeGuard, TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from countersign.domain.action import Action, Reversibility
from countersign.domain.draft import DraftObject, Violation
from countersign.domain.errors import InputRefused
from countersign.domain.operation import Operation
from countersign.domain.question import Asked
from countersign.domain.values import Value, first_problem
from countersign.ports import Material

D = TypeVar("D", bound=Value)
M = TypeVar("M", bound=Material)


class Submission(NamedTuple):
    """An action with all that a reviewer is told about it."""

    action: Action
    document: bytes
    """What goes out; its hash is the action's content hash."""
    reason: str
    summary: str
    evidence: tuple[str, ...]
    """References to what it rests on."""
    reversibility: Reversibility
    checks: str
    """What the deterministic checks said, in a sentence."""
    verdict: str
    cost: str
    """What the effect itself costs, in words."""
    live: bytes | None
    """What lies at the target now, as far as the ledger knows."""
    claims: tuple[JsonValue, ...] = ()
    """The figures with their queries, where there are any."""
    grades: tuple[JsonValue, ...] = ()
    """What the grader said of each criterion of the rubric, where something was graded."""
    words: tuple[tuple[str, str], ...] = ()
    """Texts of the draft that people read beside the document, each with its heading."""
    kept: tuple[bytes, ...] = ()
    """Texts that the action names by their hash, beside the document; they are kept with it."""
    problem: str = ""
    """What the checks found against arguments that people gave; empty if nothing."""


class Case(Protocol):
    """One kind of work."""

    @property
    def name(self) -> str:
        """Its name in requests and runs, and its policy's."""
        ...

    @property
    def drafted(self) -> bool:
        """Whether an agent drafts, and checks and a grade come before the proposal."""
        ...

    @property
    def gathers(self) -> bool:
        """Whether it rests on facts that the gateway reads outside, before anything is drafted and before each ask."""
        ...

    def submission(
        self,
        operation: Operation,
        draft_version: int,
        policy_version: str,
        args: Mapping[str, JsonValue] | None = None,
    ) -> Submission:
        """The action that the request, and the draft where there is one, come to.

        Args:
            operation: the registered operation.
            draft_version: 0 where the case is not drafted.
            policy_version: label of the policy in force, which the action pins.
            args: what a person wants in place of the action's arguments, in the full form of the tool; what is wrong
                with them stands in `problem`.

        Raises:
            InputRefused: the arguments do not have the tool's form.
            CountersignError: it must not be proposed, in a sentence.
        """
        ...


class Query(NamedTuple):
    """One figure of a draft, with where it comes from."""

    claim: str
    query: str
    result: str


class ShownDraft(NamedTuple):
    """A draft in brief, for whoever takes the run over."""

    title: str
    """What it says or proposes, in one line."""
    queries: tuple[Query, ...] = ()
    """The queries behind its figures, where there are any."""


class DraftedCase(Case, Protocol[D, M]):
    """A kind of work in which an agent drafts, and checks and a grade come before the proposal.

    The ledger keeps a draft as a JSON object under its hash; whoever has one reads it by `form` (`read_draft`).
    """

    @property
    def form(self) -> type[D]:
        """The form of its drafts."""
        ...

    @property
    def prose(self) -> tuple[str, ...]:
        """Those fields of the form whose text is read line by line."""
        ...

    rubric: ClassVar[str]
    """The name of its rubric, and of that file among the policies."""
    stops: ClassVar[Mapping[str, str]]
    """Codes of violations that no further draft mends, since people have to look first; and in words what it means that
    a run ended by one."""

    def open(self, operation: Operation, believed: Sequence[Asked]) -> M:
        """What agent and checks work on; the caller closes it.

        Args:
            operation: the registered operation.
            believed: what people answered in it as they signed it (activities.answers); nothing else allows a thing.

        Raises:
            NotFound, DataRefused: what the request rests on is not there, or no longer what was pinned.
        """
        ...

    def check(self, draft: D, material: M, *, by_agent: bool) -> tuple[Violation, ...]:
        """Every finding of the deterministic checks, those that must stop a run first, then in the draft's order.

        Args:
            draft: what was written.
            material: what it rests on.
            by_agent: whether the agent wrote it; orders in what it read were orders to it, and to no person.
        """
        ...

    def edit_problem(self, operation: Operation, tool: str, args: Mapping[str, JsonValue]) -> str:
        """What is wrong with the arguments that a person wants one of the agent's guarded calls to have instead, by the
        tool's form and by what may be read, in a sentence; empty if nothing."""
        ...

    def graded_text(self, operation: Operation, draft: D) -> str:
        """The text that the grader is shown: what would go out, or what people decide by."""
        ...

    def task(self, operation: Operation) -> Mapping[str, JsonValue]:
        """What the grader is told of the request, under `task` what was to be done; texts of people as plain values."""
        ...

    def shown(self, draft: D) -> ShownDraft:
        """The draft in brief."""
        ...


def is_drafted(case: Case) -> TypeGuard[DraftedCase[Any, Any]]:
    """Whether it is a case in which an agent drafts."""
    return case.drafted


def drafted_case(cases: Mapping[str, Case], operation: Operation) -> DraftedCase[Any, Any]:
    """The operation's case; InputRefused where nothing is drafted in it."""
    case = cases.get(operation.case)
    if case is None or not is_drafted(case):
        raise InputRefused(f"nothing is drafted for operation {operation.operation}, which is of case {operation.case}")
    return case


def read_draft(form: type[D], draft: DraftObject) -> D:
    """A draft by a case's form; InputRefused says what is wrong with it, and never repeats it."""
    try:
        return form.model_validate_json(to_json(draft))
    except ValidationError as error:
        raise InputRefused(f"the draft has not the form of one: {first_problem(error)}") from None
