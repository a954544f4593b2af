"""What goes out at execution: document, evidence and tool are what people saw, and the words say what is done."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.domain.errors import NotFound, Unavailable
from countersign.domain.execution import ExecutionStatus
from countersign.domain.operation import Operation
from tests.gateway.asking import reconcile
from tests.gateway.attempt import Attempt
from tests.gateway.rules import policy
from tests.gateway.world import TENANT, World

OTHER_HASH = "sha256:" + "7" * 64
EXECUTED = ExecutionStatus.EXECUTED


class TestDocumentAndEvidence:
    @pytest.mark.guarantee("G14")
    def test_one_changed_byte_of_the_document(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        changed = f"sha256 = '{approval.proposal.document}'"
        world.tamper("documents", "data", lambda data: data.replace(b"35.2", b"35.3"), where=changed)
        attempt.is_voided(approval, "content")

    @pytest.mark.guarantee("G14")
    def test_a_document_that_is_gone(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.tamper("documents", "sha256", lambda _: OTHER_HASH, where=f"sha256 = '{approval.proposal.document}'")
        attempt.is_voided(approval, "content")

    @pytest.mark.guarantee("G14")
    def test_one_changed_byte_of_the_evidence(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        stored = world.evidence.path(world.evidence_hash)
        stored.chmod(0o600)
        stored.write_bytes(stored.read_bytes().replace(b"352", b"353"))
        assert attempt.is_voided(approval, "evidence").detail["expected"] == world.evidence_hash

    @pytest.mark.guarantee("G14")
    def test_evidence_that_is_gone(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        world.evidence.path(world.evidence_hash).unlink()
        attempt.is_voided(approval, "evidence")

    def test_evidence_is_asked_for_by_tenant(self, world: World, attempt: Attempt) -> None:
        asked = []

        def verify(tenant: str, sha256: str) -> None:
            asked.append((tenant, sha256))
            raise NotFound("no such evidence")

        attempt.is_voided(world.granted(), "evidence", verify_evidence=verify)
        assert asked == [(TENANT, world.evidence_hash)]

    def test_evidence_that_cannot_be_reached_is_no_refusal(self, world: World, attempt: Attempt) -> None:
        def verify(tenant: str, sha256: str) -> None:
            raise Unavailable("the evidence store's disk does not answer")

        approval = world.granted()
        with pytest.raises(Unavailable, match="disk"):
            attempt.execute(approval, verify_evidence=verify)
        attempt.nothing_happened()
        assert attempt.execute(approval).status == EXECUTED

    def test_a_ledger_that_does_not_answer_is_no_refusal(
        self, world: World, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(tenant: str, operation: str) -> Operation:
            raise Unavailable("the ledger does not answer")

        approval = world.granted()
        with monkeypatch.context() as during:
            during.setattr(world.ledger.operations, "get", away)
            with pytest.raises(Unavailable, match="ledger"):
                attempt.execute(approval)
        assert (attempt.records("effect.refused"), attempt.records("alarm.raised")) == ([], [])
        assert attempt.execute(approval).status == EXECUTED


class TestWords:
    """G39: only registered tools run, and an action's words are what it would really do."""

    @pytest.mark.guarantee("G39")
    def test_an_unregistered_tool(self, world: World, attempt: Attempt) -> None:
        attempt.is_forged(world.granted(tool="refund"), "tool_not_registered")

    @pytest.mark.guarantee("G39")
    def test_a_tool_that_has_another_version_by_now(self, world: World, attempt: Attempt) -> None:
        record = attempt.is_voided(world.granted(tool_version="2"), "tool_version")
        assert (record.detail["expected"], record.detail["found"]) == ("2", "1")

    @pytest.mark.guarantee("G39")
    @pytest.mark.parametrize(
        "args",
        [
            {},
            {"channel": "press", "name": "a.md"},
            {"channel": "press", "name": "a.md", "title": "T", "url": "https://evil.example.com/"},
            {"channel": "press", "name": "../a.md", "title": "T"},
            {"channel": "../press", "name": "a.md", "title": "T"},
            {"channel": "press", "name": 1, "title": "T"},
            {"channel": "press", "name": "a.md", "title": ""},
        ],
    )
    def test_arguments_of_another_form(self, world: World, attempt: Attempt, args: dict[str, Any]) -> None:
        attempt.is_forged(world.granted(args=args), "arguments_refused")

    def test_a_channel_that_is_not_configured(self, world: World, attempt: Attempt) -> None:
        attempt.is_ended(world.granted(channel="fax"), "channel_unknown")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("target", "press:other.md"),
            ("target", "internal:q2-report.md"),
            ("scope", "all_documents"),
        ],
    )
    def test_words_that_hide_the_effect(self, world: World, attempt: Attempt, field: str, value: str) -> None:
        attempt.is_forged(world.granted(**{field: value}), "words_do_not_fit")

    @pytest.mark.guarantee("G39")
    def test_another_channel_than_the_one_it_goes_out_by(self, world: World, attempt: Attempt) -> None:
        """A policy may be stricter about one channel; the arguments say which one it really is."""
        args = {"channel": "press", "name": "q2-report.md", "title": "Sales"}
        words = {"target": "press:q2-report.md", "side_effect": "external_publication"}
        forged = world.granted(channel="internal", args=args, wanted=world.wanted("press"), **words)
        attempt.is_forged(forged, "words_do_not_fit")

    def test_an_external_publication_that_calls_itself_internal(self, world: World, attempt: Attempt) -> None:
        """The policy would grant it by rule; only the gateway knows what the channel really does."""
        approval = world.propose(side_effect="internal_publication")
        attempt.is_forged(approval, "words_do_not_fit")

    def test_another_environment(self, world: World, attempt: Attempt) -> None:
        record = attempt.is_voided(world.granted(), "environment", environment="production")
        assert (record.detail["expected"], record.detail["found"]) == ("dev", "production")


class TestSideEffectNow:
    """What a channel changes outside is the configuration's word, and that can change after people agreed."""

    @pytest.mark.guarantee("G14")
    def test_a_channel_that_has_another_side_effect_by_now(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        attempt.press.side_effect = "partner_publication"
        record = attempt.is_voided(approval, "side_effect")
        assert (record.detail["expected"], record.detail["found"]) == ("external_publication", "partner_publication")

    @pytest.mark.guarantee("G14")
    def test_it_is_asked_anew_as_what_it_is_now(self, world: World, attempt: Attempt) -> None:
        world.adopt(policy(2, internal="people"))
        approval = world.granted()
        attempt.press.side_effect = "internal_publication"
        attempt.is_voided(approval, "side_effect")
        as_it_is = approval.proposal.action.model_copy(update={"side_effect": "internal_publication"})
        again = world.propose_again(world.approval(approval), as_it_is)
        world.decide(again, "bob")
        assert attempt.execute(again).status == EXECUTED

    @pytest.mark.guarantee("G22")
    def test_where_no_person_looked_at_it_it_may_be_a_way_past_people(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(channel="internal", by_persons=())
        attempt.internal.side_effect = "external_publication"
        attempt.is_forged(approval, "words_do_not_fit")

    @pytest.mark.guarantee("G22")
    def test_a_forged_word_beside_it_raises_the_alarm(self, world: World, attempt: Attempt) -> None:
        approval = world.granted(target="press:other.md")
        attempt.press.side_effect = "partner_publication"
        attempt.is_forged(approval, "words_do_not_fit")

    @pytest.mark.guarantee("G36")
    def test_what_may_have_been_sent_before_is_settled_all_the_same(self, world: World, attempt: Attempt) -> None:
        approval = world.granted()
        attempt.publisher.fail_next("close_after")
        assert attempt.execute(approval).status == ExecutionStatus.UNKNOWN
        attempt.press.side_effect = "partner_publication"
        gateway = world.gateway(attempt.press, attempt.internal)
        assert reconcile(gateway, approval).status == EXECUTED
        assert len(attempt.publisher.effects()) == 1
