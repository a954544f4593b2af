"""Control, freezes and escalations as values: who holds what, until when, and which values cannot be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from countersign.domain.control import FIRST_VERSION, Control, first_control
from countersign.domain.escalation import SUGGESTED, Reason, Route, reason_of, suggested
from countersign.domain.freeze import Freeze, holding
from countersign.domain.policy import Policy
from tests.domain.samples import NOW, a_policy, by_rule

HOUR, MOMENT = timedelta(hours=1), timedelta(microseconds=1)
UNTIL = NOW + HOUR


def a_control(**changes: Any) -> Control:
    return Control.model_validate({"by": "person", "person": "lea", "version": 2, "since": NOW, **changes})


@pytest.mark.guarantee("G29")
def test_every_run_begins_with_the_agent_under_the_first_version() -> None:
    control = first_control(NOW)

    assert (control.by, control.version, control.holder()) == ("agent", FIRST_VERSION, "the agent")
    assert not control.lapsed(NOW + 1000 * HOUR)


@pytest.mark.guarantee("G29")
@pytest.mark.parametrize(("now", "holds"), [(UNTIL - MOMENT, True), (UNTIL, False), (UNTIL + HOUR, False)])
def test_a_lease_is_over_at_its_very_end(now: Any, holds: bool) -> None:
    control = a_control(lease_until=UNTIL)

    assert (control.held_by("lea", now), control.lapsed(now)) == (holds, not holds)
    assert not control.held_by("lou", now)


def test_control_without_a_lease_lasts() -> None:
    assert a_control().held_by("lea", NOW + 10_000 * HOUR)
    assert a_control().holder() == "lea"
    assert a_control(by="nobody", person=None).holder() == "nobody"


@pytest.mark.parametrize(
    "changes",
    [
        {"person": None}, {"by": "agent"}, {"by": "nobody"}, {"version": 0},
        {"by": "agent", "person": None, "lease_until": UNTIL}, {"by": "nobody", "person": None, "lease_until": UNTIL},
        {"by": "lea"}, {"since": NOW.replace(tzinfo=None)},
    ],
)  # fmt: skip
def test_control_that_nobody_or_two_could_claim_does_not_exist(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_control(**changes)


def a_freeze(number: int = 1, **changes: Any) -> Freeze:
    fields = {"tenant": "acme", "number": number, "reason": "a leak", "person": "omar", "since": NOW, **changes}
    return Freeze.model_validate(fields)


LIFTED = {"lifted_at": NOW + HOUR, "lifted_by": "lift-it"}
HOLDS = [
    # what is frozen, an effect's tool, whether it changes authority; whether it is held
    ({}, "publish_report", False, True),
    ({}, "refund", False, True),
    ({"tool": "refund"}, "refund", False, True),
    ({"tool": "refund"}, "publish_report", False, False),
    (LIFTED, "publish_report", False, False),
    ({"tool": "refund", **LIFTED}, "refund", False, False),
    # Nobody could lift it else.
    ({}, "unfreeze_effects", True, False),
    ({"tool": "unfreeze_effects"}, "unfreeze_effects", True, False),
    ({"tool": "change_policy"}, "change_policy", True, False),
]


@pytest.mark.parametrize(("fields", "tool", "changes_authority", "held"), HOLDS)
def test_a_freeze_holds_all_effects_or_one_tools_and_never_its_own_end(
    fields: dict[str, Any], tool: str, changes_authority: bool, held: bool
) -> None:
    assert a_freeze(**fields).holds(tool, changes_authority=changes_authority) is held
    assert (holding([a_freeze(**fields)], tool, changes_authority=changes_authority) is not None) is held


def test_an_effect_is_held_for_as_long_as_any_freeze_holds_it() -> None:
    freezes = [a_freeze(1, **LIFTED), a_freeze(2, tool="refund"), a_freeze(3)]

    assert [holding(freezes, tool, changes_authority=False) for tool in ("refund", "publish_report")] == freezes[1:]
    assert holding([], "refund", changes_authority=False) is None


@pytest.mark.parametrize(
    "changes", [{"reason": ""}, {"number": 0}, {"lifted_at": NOW}, {"lifted_by": "lift-it"}, {"person": "Omar"}]
)
def test_a_freeze_that_nobody_explains_or_half_lifted_does_not_exist(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_freeze(**changes)


REASONS = [
    # what a run gave up with, why it is brought before people
    ("denied_by_policy", Reason.POLICY_CONFLICT),
    ("not_authorised", Reason.PERMISSION_DENIED),
    ("sensitive_data", Reason.SENSITIVE_DATA),
    ("outcome_unknown", Reason.TOOL_OUTCOME_UNKNOWN),
    ("checks_failed", Reason.LOW_CONFIDENCE),
    ("rubric_failed", Reason.LOW_CONFIDENCE),
    ("max_iterations_reached", Reason.LOW_CONFIDENCE),
    ("evidence_contradicts_itself", Reason.LOW_CONFIDENCE),
    ("prompt_injection_suspected", Reason.PROMPT_INJECTION_SUSPECTED),
    ("drafting_failed", Reason.BUDGET_EXCEEDED),
    ("checkpoint_refused", Reason.REPEATED_TOOL_FAILURE),
    ("rubric_grader_error", Reason.REPEATED_TOOL_FAILURE),
    ("model_refused", Reason.REPEATED_TOOL_FAILURE),
    ("undecided_at_deadline", Reason.APPROVAL_TIMEOUT),
    ("lease_over", Reason.APPROVAL_TIMEOUT),
    # Nobody in control could mend these.
    ("not_registered", None),
    ("input_refused", None),
    ("", None),
]


@pytest.mark.parametrize(("code", "reason"), REASONS)
def test_a_run_is_brought_before_people_for_what_they_can_mend(code: str, reason: Reason | None) -> None:
    assert reason_of(code) == reason


def test_every_reason_can_come_up_and_says_what_to_do_first() -> None:
    assert {reason for _, reason in REASONS} - {None} == set(Reason) == set(SUGGESTED)
    assert all(SUGGESTED.values())


def test_what_to_do_first_is_said_for_a_code_where_that_says_more_than_its_reason() -> None:
    reason = Reason.REPEATED_TOOL_FAILURE

    refused = suggested(reason, "checkpoint_refused")

    assert "COUNTERSIGN_THREAD_KEYS" in refused
    assert "keys/threads.keys" in refused
    assert "model's name" in suggested(reason, "model_refused")
    assert suggested(reason, "data_refused") == SUGGESTED[reason]


def routes(**named: Any) -> Policy:
    return a_policy(by_rule("r", {"tool": "t"}), escalations=named)


def test_a_policy_routes_each_reason_to_a_role() -> None:
    route = {"role": "lead", "severity": "high", "within": "72h", "tell": ["admin"]}

    assert routes(LOW_CONFIDENCE=route).escalations == {Reason.LOW_CONFIDENCE: Route.model_validate(route)}
    assert routes().escalations == {}


@pytest.mark.parametrize(
    "named",
    [
        {"NOBODY_CARES": {"role": "lead", "severity": "low"}},
        {"LOW_CONFIDENCE": {"role": "lead"}},
        {"LOW_CONFIDENCE": {"severity": "low"}},
        {"LOW_CONFIDENCE": {"role": "lead", "severity": "urgent"}},
        {"LOW_CONFIDENCE": {"role": "lead", "severity": "low", "within": "0h"}},
        {"LOW_CONFIDENCE": {"role": "lead", "severity": "low", "then": "execute"}},
    ],
)
def test_a_route_that_leads_nowhere_is_refused(named: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        routes(**named)
