"""The kind of work that the specification is about: a report goes out, or money goes back, and nobody drafts either.

Apart from the real cases, which need an agent's draft and know no money; what is proposed of this one, and what an edit
makes of it, is left to the real steps.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from countersign.cases.case import Submission
from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.money import amount
from countersign.domain.operation import Operation
from countersign.domain.publication import SCOPE, TOOL, TOOL_VERSION, PublishReport
from countersign.domain.strict_json import parse
from countersign.ports import Ledger

NAME, ENVIRONMENT = "report", "test"
DATA = b"region,amount\nNorth,35200000\n"
SIDE_EFFECTS = {"press": "external_publication", "internal": "internal_publication"}


class ReportOrRefund:
    """Requests are a report's, or, with an `amount`, a refund's arguments; fulfils `cases.case.Case`."""

    name = NAME
    drafted = False
    gathers = False

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def submission(
        self,
        operation: Operation,
        draft_version: int,
        policy_version: str,
        args: Mapping[str, JsonValue] | None = None,
    ) -> Submission:
        """What was asked for, or the same with the arguments that an edit gives it."""
        return _submitted(operation, self._wanted(operation) if args is None else args, policy_version)

    def _wanted(self, operation: Operation) -> Mapping[str, JsonValue]:
        stored = self._ledger.documents.get(operation.tenant, operation.request_hash)
        asked: Mapping[str, JsonValue] = parse(stored, where="request")
        if "amount" in asked:
            return asked
        return {"channel": asked["channel"], "name": f"{operation.tenant}.md", "title": asked["title"]}


def _submitted(operation: Operation, args: Mapping[str, JsonValue], policy_version: str) -> Submission:
    title = str(args["title"])
    document = f"# {title}\n\nNorth sold for $35.2M.\n".encode()
    action = Action(
        tenant=operation.tenant, operation=operation.operation, args={**args}, scope=SCOPE, environment=ENVIRONMENT,
        evidence_hash=sha256_hex(DATA), content_hash=sha256_hex(document), policy_version=policy_version,
        **(_refund(args) if "amount" in args else _publication(args)),
    )  # fmt: skip
    return Submission(
        action=action, document=document, reason="How were sales?", summary=title, evidence=("data.csv",),
        reversibility="correctable", checks="all recomputed", verdict="none: nothing was drafted", cost="none",
        live=None,
    )  # fmt: skip


def _publication(args: Mapping[str, JsonValue]) -> dict[str, str]:
    report = PublishReport.model_validate(dict(args))
    return {
        "tool": TOOL, "tool_version": TOOL_VERSION, "channel": report.channel, "target": report.target,
        "side_effect": SIDE_EFFECTS[report.channel],
    }  # fmt: skip


def _refund(args: Mapping[str, JsonValue]) -> dict[str, object]:
    return {
        "tool": "refund", "tool_version": "1", "target": "customer:4711", "side_effect": "payment",
        "amount": amount(str(args["amount"])),
    }  # fmt: skip
