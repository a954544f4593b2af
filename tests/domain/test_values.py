"""The values that cross boundaries: keys in time, drafts, requests, channels, times, and errors in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from countersign.domain.channel import ChannelConfig, Channels
from countersign.domain.directory import Key
from countersign.domain.draft import Violation
from countersign.domain.errors import CountersignError, Drifted, NotAuthorised, NotFound, StatementRefused, Unavailable
from countersign.domain.proposal import ApprovalStatus, Proposal
from countersign.domain.report import CLAIM_REFERENCE, DatasetRef, Draft, ReportRequest
from countersign.domain.values import first_problem
from tests.domain.samples import CONTENT, NOW, a_need, a_person, a_proposal, a_vote, an_approval

HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)


def a_key(**changes: Any) -> Key:
    return Key.model_validate({"id": "bob-1", "public_key": "k", "not_before": NOW, **changes})


@pytest.mark.guarantee("G18")
@pytest.mark.parametrize(
    ("changes", "moment", "good"),
    [
        ({}, NOW - TICK, False),
        ({}, NOW, True),
        ({}, NOW + 10_000 * HOUR, True),
        ({"not_after": NOW + HOUR}, NOW + HOUR - TICK, True),
        ({"not_after": NOW + HOUR}, NOW + HOUR, False),
        ({"revoked_at": NOW + HOUR}, NOW + HOUR - TICK, True),
        ({"revoked_at": NOW + HOUR}, NOW + HOUR, False),
        ({"revoked_at": NOW - HOUR}, NOW, False),
        ({"revoked_at": NOW + HOUR, "not_after": NOW + 2 * HOUR}, NOW + HOUR, False),
    ],
)
def test_a_key_is_good_from_its_first_moment_until_its_end_or_revocation(
    changes: dict[str, Any], moment: datetime, good: bool
) -> None:
    assert a_key(**changes).good_at(moment) is good


def test_a_person_has_the_keys_that_were_registered_and_no_other() -> None:
    bob = a_person("bob", keys=(a_key(), a_key(id="bob-2", public_key="m")))

    assert bob.key("bob-2") == a_key(id="bob-2", public_key="m")
    assert bob.key("bob-3") is None
    assert bob.key("BOB-2") is None


@pytest.mark.parametrize("role", ["", "Reviewer", "re viewer", "reviewer\n", "1", "x" * 33])
def test_a_role_is_one_plain_word(role: str) -> None:
    with pytest.raises(ValidationError):
        a_person("bob", role)


def test_times_are_kept_in_utc_and_none_is_without_offset() -> None:
    tokyo = timezone(timedelta(hours=9))

    assert a_key(not_before=NOW.astimezone(tokyo)).not_before.tzinfo == UTC
    assert a_key(not_before=NOW.astimezone(tokyo)).not_before == NOW
    with pytest.raises(ValidationError, match="a time needs an offset"):
        a_key(not_before=NOW.replace(tzinfo=None))
    for moment in ("2026-11-30T12:00:00Z", 1_796_040_000):
        with pytest.raises(ValidationError):
            a_key(not_before=moment)


def test_a_proposal_is_its_actions() -> None:
    proposal = a_proposal(a_need(decisions=("approve", "reject")), a_need("lawyer", decisions=("approve",)))

    assert (proposal.tenant, proposal.operation) == ("acme", "report-1")
    assert proposal.decisions == {"approve"}


def test_a_proposal_says_what_its_effect_costs() -> None:
    fields = a_proposal().model_dump()

    with pytest.raises(ValidationError, match="cost"):
        Proposal.model_validate({name: value for name, value in fields.items() if name != "cost"})


@pytest.mark.guarantee("G46")
def test_what_is_wrong_with_a_value_is_told_without_the_value() -> None:
    with pytest.raises(ValidationError) as wrong:
        Draft.model_validate({**DRAFT, "claims": [{**CLAIM, "value": 4711}]})

    assert first_problem(wrong.value) == "claims.0.value: Input should be a valid string"


def test_an_approval_survives_the_way_through_json() -> None:
    approval = an_approval(status=ApprovalStatus.REJECTED, votes=[a_vote("bob", "reject")])

    assert type(approval).model_validate_json(approval.model_dump_json()) == approval


CLAIM = {"id": "c1", "query": "SELECT 1", "value": "1", "unit": "rows", "shown": "1"}
DRAFT: dict[str, Any] = {
    "title": "Sales",
    "body": "There is {{c1}} row.",
    "claims": [CLAIM],
    "source": "sales.csv",
    "period": "2026",
    "unit": "rows",
    "limitations": ["none known"],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"title": ""},
        {"title": "x" * 501},
        {"body": ""},
        {"body": "x" * 20_001},
        {"claims": []},
        {"claims": [{**CLAIM, "id": "C1"}]},
        {"claims": [{**CLAIM, "value": 1}]},
        {"claims": [{**CLAIM, "value": 0.1}]},
        {"claims": [{**CLAIM, "query": ""}]},
        {"claims": [CLAIM] * 61},
        {"source": ""},
        {"limitations": []},
        {"limitations": [""]},
        {"approved": True},
    ],
)
def test_a_draft_that_lacks_or_adds_something_is_none(changes: dict[str, Any]) -> None:
    assert Draft.model_validate(DRAFT).claims[0].id == "c1"
    with pytest.raises(ValidationError):
        Draft.model_validate({**DRAFT, **changes})


def test_a_reference_names_one_claim() -> None:
    assert CLAIM_REFERENCE.findall("{{c1}} {{ c1 }} {{C1}} {c1} {{total_2}} {{}}") == ["c1", "total_2"]


def test_a_finding_is_one_line() -> None:
    found = Violation(code="value_mismatch", place="claims.c1.value", expected="2", found="1")

    assert found.sentence() == "claims.c1.value: value_mismatch: expected 2, found 1"


REQUEST: dict[str, Any] = {
    "question": "How did sales develop?",
    "channel": "public",
    "dataset": {"sha256": CONTENT, "name": "sales.csv", "schema": {}},
}


def test_a_request_reads_back_with_its_defaults() -> None:
    request = ReportRequest.model_validate(REQUEST)

    assert (request.case, request.language, request.dataset.schema_.delimiter) == ("report", "en", ",")
    assert ReportRequest.model_validate_json(request.model_dump_json(by_alias=True)) == request


@pytest.mark.parametrize(
    "changes",
    [
        {"question": ""},
        {"question": "x" * 2_001},
        {"channel": "../public"},
        {"channel": "Public"},
        {"channel": ""},
        {"language": "fr"},
        {"case": "refund"},
        {"dataset": {"sha256": "abc", "name": "a", "schema": {}}},
        {"dataset": {"sha256": CONTENT, "name": "a"}},
        {"dataset": {"sha256": CONTENT, "name": "a", "schema": {"delimiter": "#"}}},
        {"dataset": {"sha256": CONTENT, "name": "a", "schema": {"columns": {"a": {"type": "money"}}}}},
        {
            "dataset": {
                "sha256": CONTENT,
                "name": "a",
                "schema": {"columns": {"a": {"type": "number", "currency": "$"}}},
            }
        },
        {"approvals": 0},
    ],
)
def test_a_malformed_request_does_not_exist(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ReportRequest.model_validate({**REQUEST, **changes})


def test_what_one_request_declares_is_not_shared_with_the_next() -> None:
    def declared() -> dict[str, Any]:
        return DatasetRef.model_validate(REQUEST["dataset"]).schema_.columns

    assert declared() == {}
    assert declared() is not declared()


CHANNEL: dict[str, Any] = {
    "kind": "file", "tenants": ["acme"], "side_effect": "external_publication", "reversibility": "correctable",
}  # fmt: skip
HTTP: dict[str, Any] = {**CHANNEL, "kind": "http", "url": "https://press.example.com/reports"}
PAYMENTS: dict[str, Any] = {**HTTP, "kind": "payments", "orders_url": "https://press.example.com/orders"}


@pytest.mark.parametrize("name", ["public", "p", "press-2"])
def test_a_channel_is_a_folder_or_addresses(name: str) -> None:
    named = {name: CHANNEL, "press": {**HTTP, "token_env": "PRESS_TOKEN"}, "payments": {**PAYMENTS, "token_env": "T"}}
    channels = Channels.model_validate({"channels": named}).channels

    assert channels["press"].token_env == "PRESS_TOKEN"
    assert (channels[name].urls, channels["press"].urls) == ((), (HTTP["url"],))
    assert channels["payments"].urls == (PAYMENTS["url"], PAYMENTS["orders_url"])


@pytest.mark.parametrize(
    "channel",
    [
        {**CHANNEL, "url": "https://press.example.com"},
        {**HTTP, "url": ""},
        {**HTTP, "token_env": "press-token"},
        {**HTTP, "token": "secret"},
        {**HTTP, "orders_url": "https://press.example.com/orders"},
        {**HTTP, "optional": True},
        {**PAYMENTS, "url": ""},
        {**PAYMENTS, "orders_url": ""},
        {**PAYMENTS, "tenants": ["acme", "globex"]},
        {**CHANNEL, "kind": "payments"},
        {**CHANNEL, "optional": True},
        {**CHANNEL, "kind": "mail"},
        {**CHANNEL, "tenants": []},
        {**CHANNEL, "tenants": ["../acme"]},
        {name: value for name, value in CHANNEL.items() if name != "tenants"},
        {**CHANNEL, "side_effect": ""},
        {**CHANNEL, "reversibility": "maybe"},
        {"kind": "file"},
    ],
)
def test_a_malformed_channel_is_refused(channel: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ChannelConfig.model_validate(channel)


@pytest.mark.parametrize("names", [[], ["Public"], [".."], ["a/b"], [""], ["x" * 33]])
def test_a_channel_name_is_no_path(names: list[str]) -> None:
    with pytest.raises(ValidationError):
        Channels.model_validate({"channels": dict.fromkeys(names, CHANNEL)})


def test_an_error_is_its_sentence_with_a_stable_code() -> None:
    refused, denied = StatementRefused("expired", "it was good until noon"), NotAuthorised("quorum", "too few")

    assert (NotFound("no run r1").message, NotFound("no run r1").code) == ("no run r1", "NOT_FOUND")
    assert (refused.message, refused.reason, refused.code) == ("it was good until noon", "expired", "STATEMENT_REFUSED")
    assert (denied.message, denied.reason) == ("too few", "quorum")
    assert Unavailable("the disk is full", retry_after=1.5).retry_after == 1.5
    drifted = Drifted("roles", "bob left", expected="2 of role reviewer", found="bob: is no longer active")
    assert (drifted.message, drifted.reason, drifted.code) == ("bob left", "roles", "DRIFTED")
    assert (drifted.expected, drifted.found) == ("2 of role reviewer", "bob: is no longer active")
    assert CountersignError().message == "ERROR"


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [kind for kind in CountersignError.__subclasses__() if kind.__module__ == CountersignError.__module__]

    assert len({kind.code for kind in kinds} | {CountersignError.code}) == len(kinds) + 1
