"""What a kind of work is to the run: how its request becomes one exact action, and what an edit makes of that.

Apart from the cases themselves, so that steps and commands know this form alone; a new case is one more of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from countersign.domain.action import Action, Reversibility
from countersign.domain.operation import Operation
from countersign.domain.proposal import Proposal


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
            CountersignError: it must not be proposed, in a sentence.
        """
        ...

    def edited(
        self, operation: Operation, before: Proposal, args: Mapping[str, JsonValue], policy_version: str
    ) -> Submission:
        """The same with other arguments, in the full form of the tool; what is wrong with it stands in `problem`.

        Raises:
            InputRefused: the arguments do not have the tool's form.
        """
        ...
