"""The administration case: a change of authority becomes an action like any other, and nobody drafts it (G13)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from countersign.cases.case import Submission
from countersign.domain.action import Action
from countersign.domain.administration import (
    ADMINISTRATION,
    SCOPE,
    SIDE_EFFECT,
    TOOL_VERSION,
    AdministrationRequest,
    content,
    present,
    problems,
    summary,
    target,
    tool,
)
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import InputRefused
from countersign.domain.operation import Operation
from countersign.domain.values import Sha256
from countersign.ports import Clock, Ledger

_ANOTHER = "a change of authority is not edited; reject it, and ask for the other one"


class AdministrationCase:
    """Changing the directory or a policy, or lifting a freeze; fulfils `cases.case.Case`."""

    name = ADMINISTRATION
    drafted = False
    gathers = False

    def __init__(self, ledger: Ledger, environment: str, clock: Clock) -> None:
        self._ledger = ledger
        self._environment = environment
        self._clock = clock

    def submission(
        self,
        operation: Operation,
        draft_version: int,  # noqa: ARG002 - as in Case
        policy_version: str,
        args: Mapping[str, JsonValue] | None = None,
    ) -> Submission:
        """The change that was asked for, resting on what is in force now; another one is asked for anew.

        Raises:
            InputRefused: it must not be made, as `domain.administration.problems` says.
        """
        stored = self._ledger.documents.get(operation.tenant, operation.request_hash)
        request = AdministrationRequest.model_validate_json(stored)
        authority = self._ledger.directory.authority(operation.tenant)
        found = problems(request.change, authority, self._clock())
        if found:
            raise InputRefused(f"operation {operation.operation}: {'; '.join(found)}")
        before, after = present(request.change, authority), content(request.change)
        action = self._action(operation, request, sha256_hex(before), sha256_hex(after), policy_version)
        return Submission(
            action=action,
            document=after, reason=request.reason, summary=summary(request.change),
            evidence=(f"in force now {sha256_hex(before)}",), reversibility="correctable",
            checks="the change fits the directory and the policies in force, and leaves people who can change them",
            verdict="none: nothing was drafted", cost="none", live=before,
            problem="" if args is None or dict(args) == action.args else _ANOTHER,
        )  # fmt: skip

    def _action(
        self, operation: Operation, request: AdministrationRequest, before: Sha256, after: Sha256, policy_version: str
    ) -> Action:
        change = request.change
        return Action(
            tenant=operation.tenant, operation=operation.operation, tool=tool(change), tool_version=TOOL_VERSION,
            args={"change": change.model_dump(mode="json")}, target=target(change), side_effect=SIDE_EFFECT,
            scope=SCOPE, environment=self._environment, content_hash=after, evidence_hash=before,
            policy_version=policy_version,
        )  # fmt: skip
