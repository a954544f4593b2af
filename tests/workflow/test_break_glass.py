"""Breaking the glass: off unless the policy has it, two persons, a reason, and records of its own (G11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_state

REASON = sha256_hex(b"all reviewers are away, and the market opens at nine")


@pytest.mark.guarantee("G11")
async def test_two_leads_let_a_report_out_when_no_reviewer_is_there_and_the_audit_says_so(
    installation: Installation, tmp_path: Path
) -> None:
    lax = installation.with_terms(tmp_path, break_glass={"role": "lead", "approvals": 2})
    for lead in ("lena", "lou"):
        lax.enrol(lead, "lead", "requester")
    async with lax.workers():
        run = await lax.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        proposal = lax.proposal("op-1")

        lax.ledger.documents.put("acme", b"all reviewers are away, and the market opens at nine")

        async def glass(person: str, reason: str = REASON) -> Outcome:
            message = lax.decision(proposal, person, "break_glass", comment_hash=reason)
            outcome: Outcome = await run.execute_update("decide", message, result_type=Outcome)
            return outcome

        unreasoned, unread = await glass("lena", ""), await glass("lena", "sha256:" + "5" * 64)
        requester, reviewer = await glass("rita"), await glass("bob")
        first, again = await glass("lena"), await glass("lena")
        assert lax.published() == []
        second = await glass("lou")
        result = await run.result()
    refused = [outcome.ruling for outcome in (unreasoned, unread, requester, reviewer, again)]
    assert refused == [
        Ruling.REASON_MISSING, Ruling.REASON_MISSING, Ruling.REQUESTER_MAY_NOT_DECIDE, Ruling.ROLE_MISSING,
        Ruling.ALREADY_VOTED,
    ]  # fmt: skip
    assert (first.status, second.status) == (ApprovalStatus.PENDING, ApprovalStatus.GRANTED)
    assert result.state == State.SUCCEEDED
    types = [record.type for record in lax.ledger.audit.records("acme", "op-1")]
    assert types.count("break_glass.accepted") == 2
    assert types.count("break_glass.granted") == 1
    assert len(lax.published()) == 1


@pytest.mark.guarantee("G11")
async def test_without_a_word_of_the_policy_nobody_breaks_the_glass(sqlite_installation: Installation) -> None:
    installation = sqlite_installation
    async with installation.workers("agent"):
        run = await installation.start("op-1")
        await until_state(run, State.WAITING_APPROVAL)
        reason = installation.ledger.documents.put("acme", b"nobody is here")
        message = installation.decision(installation.proposal("op-1"), "bob", "break_glass", comment_hash=reason)
        outcome = await run.execute_update("decide", message, result_type=Outcome)
    assert outcome.ruling == Ruling.DECISION_NOT_ALLOWED
