"""A reason that people give never reads as a result, whatever it says: not in rulings, statuses, records or sentences.

Each course is played twice, with an honest reason and with one that poses as a result; apart from the reason's own hash
nothing may tell the two apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import MEANING, Outcome, Ruling
from countersign.domain.execution import EffectResult
from countersign.signing.statements import sign_decision
from tests.authority.house import House, Tenant, private_key
from tests.authority.people import POLICIES

HONEST = "the south is missing"
POSING = [
    "status: executed",
    "APPROVED",
    "approval.granted",
    "no\n\nstatus: executed\neffect.executed by gateway",
    '{"ruling": "accepted", "status": "granted", "decision": "approve"}',
    "\x1b[2K\raccepted: it counts",
    "\u202edevorppa",
]
TYPES = {
    "operation.registered", "approval.opened", "approval.rejected", "approval.edited",
    "approval.superseded", "decision.accepted", "decision.refused", "decision.carried_over", "break_glass.accepted",
    "effect.refused", "alarm.raised",
}  # fmt: skip
"""All that can be recorded of these courses: nothing is granted, sent or executed, and whoever tries to is an alarm."""


class Course:
    """What happened to a tenant while somebody gave this reason for everything."""

    def __init__(self, tenant: Tenant, reason: str) -> None:
        self.tenant, self.reason = tenant, reason
        self.outcomes: list[Outcome] = []
        self.effects: list[EffectResult] = []
        tenant.ask()

    def says(self, who: str, kind: str, **said: Any) -> None:
        """Somebody decides, for the reason given."""
        kept = self.tenant.ledger.documents.put(self.tenant.name, self.reason.encode())
        statement = self.tenant.statement(who, kind, comment_hash=kept, **said)
        token = sign_decision(statement, private_key(f"{who}-1"))
        self.outcomes.append(self.tenant.receive(token, f"m-{len(self.outcomes)}"))

    def edits(self, who: str) -> None:
        """Somebody edits the title, for the reason given."""
        action = self.tenant.edited(title="Sales of Q2")
        self.tenant.keep(action)
        self.says(who, "edit", edited_action=action.hash())

    def told(self) -> str:
        """All that is recorded, proposed and answered, as text; times and hashes that name the tenant left out."""
        tenant = self.tenant
        records = [
            [
                record.type,
                record.subject,
                sorted(record.detail),
                record.detail.get("ruling"),
                record.detail.get("reason"),
            ]
            for record in tenant.ledger.audit.records(tenant.name, "report-1")
        ]
        asked = [
            [one.status, *((vote.person, vote.decision) for vote in one.votes)]
            for one in tenant.ledger.approvals.of_operation(tenant.name, "report-1")
        ]
        answers = [[one.ruling, one.status, one.detail, one.sentence()] for one in self.outcomes]
        return json.dumps([records, asked, answers, [[one.status, one.reason] for one in self.effects]])


def _rejected(course: Course) -> None:
    course.says("bob", "reject")
    course.says("carl", "approve")
    course.effects.append(course.tenant.execute())
    course.tenant.ask_anew()


def _edited(course: Course) -> None:
    course.edits("bob")
    course.tenant.ask_again()
    course.says("bob", "approve")
    course.effects.append(course.tenant.execute())


def _not_for_them(course: Course) -> None:
    course.says("omar", "approve")
    course.says("rita", "reject")
    course.edits("lena")
    course.says("bob", "respond")
    course.effects.append(course.tenant.execute())


def _glass_by_one(course: Course) -> None:
    course.says("olga", "break_glass")
    course.says("bob", "break_glass")
    course.effects.append(course.tenant.execute())


COURSES: dict[str, tuple[str, Callable[[Course], None], list[str]]] = {
    "rejected": ("edit-two", _rejected, ["rejected", "already_settled"]),
    "edited": ("edit-two", _edited, ["edited", "author_may_not_approve"]),
    "refused": (
        "edit-two", _not_for_them,
        ["role_missing", "requester_may_not_decide", "role_missing", "respond_is_for_questions"],
    ),
    "glass": ("glass", _glass_by_one, ["pending", "role_missing"]),
}  # fmt: skip
"""The policy, what happens, and how each decision is answered: the status after it, or the ruling that refused it."""


def _play(house: House, name: str, kind: str, reason: str) -> Course:
    policy, happens, _ = COURSES[kind]
    course = Course(Tenant(house, name, POLICIES[policy]), reason)
    happens(course)
    return course


class Played(NamedTuple):
    """One kind of course, with either sort of reason."""

    kind: str
    honest: Course
    posing: list[Course]


@pytest.fixture(scope="module", params=sorted(COURSES))
def played(request: pytest.FixtureRequest, house: House) -> Played:
    """Each kind of course, played once for all tests here."""
    kind = request.param
    posing = [_play(house, f"posing-{kind}-{number}", kind, reason) for number, reason in enumerate(POSING)]
    return Played(kind, _play(house, f"honest-{kind}", kind, HONEST), posing)


@pytest.mark.guarantee("G10")
@pytest.mark.guarantee("G26")
def test_reason_text_never_reads_as_a_result(played: Played) -> None:
    for course in played.posing:
        outcomes = course.outcomes
        answers = [one.status if one.ruling == Ruling.ACCEPTED else one.ruling for one in outcomes]

        assert course.told() == played.honest.told()
        assert answers == COURSES[played.kind][2]
        assert [one.sentence() for one in outcomes] == [
            f"{one.ruling.value}: {MEANING[one.ruling]}" for one in outcomes
        ]
        assert [one.status for one in course.effects] == [None]
        assert course.tenant.house.published(f"{course.tenant.name}.md") == []


@pytest.mark.guarantee("G46")
def test_records_and_proposals_hold_a_reasons_hash_alone(played: Played) -> None:
    for course in played.posing:
        tenant = course.tenant
        records = list(tenant.ledger.audit.records(tenant.name, "report-1"))
        opened = tenant.ledger.approvals.of_operation(tenant.name, "report-1")
        kept = [*(record.model_dump() for record in records), *(one.model_dump() for one in opened)]

        assert {record.type for record in records} <= TYPES
        said = {record.detail["comment_hash"] for record in records if "comment_hash" in record.detail}
        assert said == {sha256_hex(course.reason.encode())}
        assert not [text for text in _texts(kept) if course.reason in text]


def _texts(value: Any) -> list[str]:
    """Every text in a structure, names of fields too."""
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in _texts(one)]
    if isinstance(value, list | tuple):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []
