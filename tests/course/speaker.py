"""What people send to a run: signed by the keys that they have, and by what they know of the run, or not readable."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from countersign.domain.canonical import canonical_bytes
from tests.course.model import Model
from tests.course.stage import TENANT, Stage, a_draft
from tests.course.steps import HOLDER, Say
from tests.course.terms import PEOPLE
from tests.course.values import Said

DECISIONS = ("approve", "reject", "edit")
GARBAGE: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("decide", ({"decision": "approve"},)), ("decide", ()), ("take_over", ({"statement": "e30.e30.e30"},)),
    ("release", ("lea", 2)), ("publish_now", ({"statement": "x"},)), ("cancel", ({"unsigned": {"person": "lea"}},)),
)  # fmt: skip


class Speaker:
    """Everybody, in one course."""

    def __init__(self, stage: Stage, operation: str, model: Model) -> None:
        self._stage, self._operation, self._model = stage, operation, model
        self.sent: list[tuple[str, dict[str, str], Said]] = []
        """All that was signed, with the name under which it is sent."""

    async def worded(self, say: Say) -> tuple[Said, str, tuple[Any, ...]]:
        """What the person knows of the run by now, signed."""
        model, installation, kind = self._model, self._stage.installation, say.kind
        if say.who == HOLDER:
            say = say._replace(who=model.in_control if model.in_control in PEOPLE else "lea")
        ask = max(len(model.asks) - (say.stale == 1), 0)
        if kind == "garbage" or (kind in DECISIONS and not ask):
            name, args = GARBAGE[len(self.sent) % len(GARBAGE)]
            return Said(say.who, "garbage"), name, args
        now = (await self._stage.skipping.now()).replace(microsecond=0)
        times = {"issued_at": now, "expires_at": now + timedelta(days=30)}
        if kind in DECISIONS:
            said = Said(say.who, kind, about=ask)
            proposal = self._stage.asks(self._operation)[ask - 1].proposal
            signed = (
                installation.edit(proposal, say.who, title=f"Sales, read by {say.who}{self._again()}")
                if kind == "edit"
                else installation.decision(proposal, say.who, kind, **times)  # type: ignore[arg-type]
            )
            name = "decide"
        else:
            said, fields = self._commanded(say)
            signed = installation.command(self._operation, say.who, kind, **fields, **times)  # type: ignore[arg-type]
            name = kind
        self.sent.append((name, signed, said))
        return said, name, (signed,)

    def _commanded(self, say: Say) -> tuple[Said, dict[str, Any]]:
        model, kind = self._model, say.kind
        fields: dict[str, Any] = {"control_version": max(model.version - (say.stale == 1), 1)}
        draft = max(len(model.drafts) - (say.stale == 2), 0)
        if kind in ("amend", "grade", "propose", "release"):
            fields["draft_version"] = draft
        if kind == "amend":
            made = a_draft(f"Sales, amended{self._again()}", sound=say.sound)
            fields["content"] = self._stage.ledger.documents.put(TENANT, canonical_bytes(made))
        if kind == "hand_over":
            fields["to"] = say.to
        if kind == "supersede":
            fields["successor"] = self._stage.successor()
        version = fields["control_version"]
        return Said(say.who, kind, version=version, draft=draft, to=say.to, sound=say.sound), fields

    def _again(self) -> str:
        """Makes each text another one, without a figure that the checks would want to see proved."""
        return ", again" * len(self.sent)
