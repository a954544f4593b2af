"""The language of the specification's rows: short sentences, each done to a tenant and answered with one word.

`bob approves -> granted` expects the decision to be accepted and the approval to stand so afterwards; a word that is a
ruling (`-> already_voted`) expects that refusal, and that the approval stands as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Outcome, Ruling, Statement
from countersign.domain.durations import duration
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.values import Sha256
from countersign.signing.statements import sign_decision
from tests.authority.house import House, Tenant, private_key
from tests.authority.people import POLICIES

SPECIFICATION = Path(__file__).with_name("specification.txt")
DECISION = re.compile(r"(\w+) (approves|rejects|responds|edits|breaks)(?: ([^()]+))?(?: \((.+)\))?")
KINDS = {
    "approves": "approve", "rejects": "reject", "responds": "respond", "edits": "edit", "breaks": "break_glass",
}  # fmt: skip
EDITS: dict[str, dict[str, str]] = {
    "the title": {"title": "Sales of Q2"},
    "the title once more": {"title": "Sales of the second quarter"},
    "the title back": {"title": "Sales"},
    "the channel": {"channel": "internal"},
    "the channel back": {"channel": "press"},
    "the name": {"name": "another.md"},
    "nothing": {},
}
TICK = timedelta(microseconds=1)
ODD: dict[str, dict[str, Any]] = {
    "for the next version": {"approval_version": 2},
    "for another action": {"action_hash": sha256_hex(b"another action")},
    "for another approval": {"approval_id": "apr-another"},
    "for another operation": {"operation": "report-2"},
    "for another tenant": {"tenant": "umbrella"},
    "for another installation": {"installation": "elsewhere"},
    "without a reason": {"comment_hash": ""},
    "naming an edited action": {"edited_action": sha256_hex(b"an edit")},
    "of something else": {"edited_action": sha256_hex(b"something else")},
}
"""What makes a statement an odd one."""


class Row(NamedTuple):
    """One line of the specification."""

    id: str
    policy: str
    """Its name, then the amount if there is one, and `dev` where unsigned decisions are taken."""
    steps: tuple[str, ...]
    effect: str
    """What comes of asking the gateway in the end."""


def rows(*, first_only: bool = False) -> list[Any]:
    """The specification's rows as pytest takes them, with the guarantees of their group's heading.

    `first_only`: the first row of each group.
    """
    found: list[Any] = []
    for group in SPECIFICATION.read_text(encoding="utf-8").split("\n# ")[1:]:
        heading, *lines = group.splitlines()
        marks = [pytest.mark.guarantee(guarantee) for guarantee in re.findall(r"G\d\d", heading)]
        told = [_row(line) for line in re.sub(r"\n\s+", " ", "\n".join(lines).strip()).splitlines()]
        found += [pytest.param(row, id=row.id, marks=marks) for row in told[: 1 if first_only else None]]
    return found


def _row(line: str) -> Row:
    name, policy, steps, effect = (cell.strip() for cell in line.split("|"))
    return Row(name, policy, tuple(steps.split("; ")), effect)


def play(house: House, row: Row) -> None:
    """Do what a row says in a tenant of its own, and compare each answer, and the effect, with what it expects."""
    name, *more = row.policy.split()
    stage = Stage(Tenant(house, row.id, POLICIES[name], unsigned="dev" in more))
    if not row.steps[0].startswith("rita asks"):
        stage.tenant.ask(" ".join(more[:2]) if len(more) > 1 else "")
    for step in row.steps:
        stage.take(step)
    stage.check_record()
    stage.check_effect(row.effect)


class Stage:
    """A tenant while a row is played on it."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.sent: dict[tuple[str, str], tuple[Statement, str, str]] = {}
        """The first statement of each person and kind, with its token and message."""
        self.rulings: list[Ruling] = []
        self.count = 0

    def take(self, step: str) -> None:
        """One sentence, and the word that is expected."""
        sentence, _, expected = step.partition(" -> ")
        decision = DECISION.fullmatch(sentence)
        if decision is None:
            answer = self._happen(sentence)
            assert answer == expected, f"{step}: it was {answer}"
            return
        before = self.tenant.current.status
        outcome = self._decide(decision[1], KINDS[decision[2]], decision[3] or "", decision[4] or "")
        if "same message" not in sentence:
            self.rulings.append(outcome.ruling)
        accepted = outcome.ruling == Ruling.ACCEPTED
        found = outcome.status if accepted else outcome.ruling
        assert found == expected, f"{step}: it was {outcome.sentence()}"
        assert self.tenant.current.status == (outcome.status if accepted else before), step

    def check_record(self) -> None:
        """Whatever was sent has left its ruling in the record, once and in order (G10, G26)."""
        records = self.tenant.ledger.audit.records(self.tenant.name, "report-1")
        assert [record.detail["ruling"] for record in records if "ruling" in record.detail] == self.rulings

    def check_effect(self, expected: str) -> None:
        """Ask the gateway, twice; something lies outside exactly if it should, and then exactly what was approved."""
        tenant = self.tenant
        if not tenant.asked:
            assert expected == "nothing"
            assert not tenant.ledger.approvals.of_operation(tenant.name, "report-1")
            return
        granted = tenant.current
        results = [tenant.execute(granted) for _ in range(2)]
        published = tenant.house.published(f"{tenant.name}.md")
        if expected == "executed":
            assert [result.status for result in results] == ["executed", "executed"], results[0].reason
            assert [sha256_hex(each) for each in published] == [granted.proposal.action.content_hash]
            assert tenant.current.status == ApprovalStatus.CONSUMED
        else:
            reason = expected.removeprefix("nothing").removeprefix(": ") or f"approval_{granted.status.value}"
            assert published == []
            assert results[0].reason.partition(":")[0] == reason, results[0].reason

    def _decide(self, who: str, kind: str, what: str, how: str) -> Outcome:
        tenant = self.tenant
        self.count += 1
        message = f"m-{self.count}"
        if how in ("again", "the same message again"):
            _, token, first = self.sent[who, kind]
            return tenant.receive(token, message if how == "again" else first)
        said = self._said(who, kind, how)
        if kind == "edit" and not said.edited_action:
            said = said.model_copy(update={"edited_action": self._edited(what, is_kept=how != "lost on the way")})
        if how == "unsigned":
            return tenant.receive_unsigned(said.model_copy(update={"key_id": ""}), message)
        key_id = f"{how[5:-6]}-1" if how.startswith("with ") else said.key_id
        token = sign_decision(said, private_key(key_id))
        self.sent.setdefault((who, kind), (said, token, message))
        return tenant.receive(token, message)

    def _edited(self, what: str, *, is_kept: bool) -> Sha256:
        action = self.tenant.edited(**EDITS.get(what, {"amount": what.removeprefix("it to ")}))
        if is_kept:
            self.tenant.keep(action)
        return action.hash()

    def _said(self, who: str, kind: str, how: str) -> Statement:
        about = self.tenant.asked[int(how[-1]) - 1] if how.startswith("for version") else None
        said = self.tenant.statement(who, kind, about)
        special: dict[str, dict[str, Any]] = {
            "expired": {"expires_at": self.tenant.now},
            "from the future": {"issued_at": self.tenant.now + timedelta(hours=1)},
            "by the second key": {"key_id": f"{who}-2"},
        }
        if how == "another under the same id":
            return said.model_copy(update={"id": self.sent[who, "approve"][0].id})
        return said.model_copy(update={**ODD, **special}.get(how, {}))

    def _happen(self, sentence: str) -> str:
        for pattern, event in EVENTS.items():
            told = re.fullmatch(pattern, sentence)
            if told is not None:
                return event(self.tenant, *told.groups()) or ""
        raise AssertionError(f"nothing of that kind can happen: {sentence}")


Event = Callable[..., str | None]


def _roles(tenant: Tenant, person: str) -> frozenset[str]:
    return tenant.ledger.directory.persons(tenant.name)[person].roles


def _pass(tenant: Tenant, elapsed: timedelta) -> None:
    tenant.now += elapsed


def _close(tenant: Tenant, before: timedelta) -> None:
    tenant.now = max(vote.decided_at for vote in tenant.current.votes) + timedelta(hours=1) - before


def _deadline(tenant: Tenant, before: timedelta) -> None:
    tenant.now = tenant.current.proposal.deadline - before


def _acts(tenant: Tenant) -> str:
    result = tenant.execute()
    return "voided" if result.voided else str(result.status or "refused")


def _other_operation(tenant: Tenant, sum_: str, by: str = "") -> str:
    operation = f"refund-{tenant.changes}-{len(tenant.asked)}-{sum_.split('.')[0]}"
    answer = tenant.ask(sum_, operation)
    if not by:
        return answer
    said = tenant.statement(by, "approve", tenant.ledger.approvals.current(tenant.name, operation))
    token = sign_decision(said, private_key(said.key_id))
    return tenant.receive(token, f"m-{operation}", operation=operation).ruling.value


EVENTS: dict[str, Event] = {
    r"(\w+) loses (\w+)": lambda t, who, role: t.move(who, roles=_roles(t, who) - {role}),
    r"(\w+) becomes (\w+)": lambda t, who, role: t.move(who, roles=_roles(t, who) | {role}),
    r"(\w+) leaves": lambda t, who: t.move(who, active=False),
    r"(\w+) comes back": lambda t, who: t.move(who, active=True),
    r"(\w+)'s key is revoked": lambda t, who: t.revoke(f"{who}-1"),
    r"(\w+) gets a second key": lambda t, who: t.add_key(f"{who}-2"),
    r"(\w+)'s limit becomes (.+)": lambda t, who, sum_: t.move(who, limits=[{"each": sum_}]),
    r"policy ([\w-]+) comes in force": lambda t, name: t.adopt(POLICIES[name]),
    r"(\d+[smhd]) pass": lambda t, text: _pass(t, duration(text)),
    r"people wait just not (\d+[smhd])": lambda t, text: _pass(t, duration(text) - TICK),
    r"the deadline is near": lambda t: _deadline(t, TICK),
    r"the deadline is there": lambda t: _deadline(t, timedelta(0)),
    r"the grant is about to lapse": lambda t: _close(t, TICK),
    r"the grant lapses": lambda t: _close(t, timedelta(0)),
    r"the run expires it": lambda t: t.settle(ApprovalStatus.EXPIRED).value,
    r"the run is cancelled": lambda t: t.settle(ApprovalStatus.CANCELLED).value,
    r"rita asks(?: for (.+))?": lambda t, sum_: t.ask(sum_ or ""),
    r"the run asks again": lambda t: t.ask_again(),
    r"another run asks": lambda t: t.ask_anew(),
    r"the gateway acts": _acts,
    r"(.+) are asked for elsewhere": _other_operation,
    r"(.+) are approved elsewhere by (\w+)": _other_operation,
}
"""What happens that is no decision, and what it is answered with."""
