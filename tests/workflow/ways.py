"""The ways that runs go, each once: what a recording is made of, for every state that a run can be in, open and closed.

Apart from the recording, so that a way is a few lines of what people do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from temporalio.client import WorkflowFailureError, WorkflowHandle

from activities.interfaces import RunOrder
from countersign.domain.administration import DirectoryChange, PersonChange
from countersign.domain.decision import Outcome
from countersign.domain.directory import Standing
from countersign.domain.proposal import StatementKind
from countersign.domain.run import RunStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.publisher import Publisher
from tests.support.waiting import eventually, until_messages, until_state
from tests.workflow.acting import done, operation_of, rewritten, settled, stored, taken_over, vote
from tests.workflow.asking import answer

Run = WorkflowHandle[Any, Any]
GROWN_LONG = 60
"""Events that a run which waits for people is just short of."""
DENIED = {"rules": [{"id": "nothing", "when": {"tool": "another"}, "grant": "by_rule"}]}
LADDER = {"remind": ["1s"], "tiers": [{"after": "2s", "role": "lead", "decisions": ["approve", "reject"]}]}


def _route(within: str) -> dict[str, Any]:
    return {"escalations": {"POLICY_CONFLICT": {"role": "admin", "severity": "medium", "within": within}}}


class Way(NamedTuple):
    """One way, in an installation of its own."""

    go: Callable[[Installation, Publisher], Awaitable[Run]]
    need: Mapping[str, Any] = MappingProxyType({})
    """What its report policy's needs have else."""
    fields: Mapping[str, Any] = MappingProxyType({})
    """What its report policy has else."""
    grows_long_after: int = 0
    """Events after which its server suggests to go on in another run; 0: as usual."""
    has_workers: bool = True
    """Whether workers are there all the time; otherwise the way starts and stops them."""
    agent_asks: bool = False
    """Whether its agent, a stand-in, asks people one question while it drafts."""


async def _decided(installation: Installation, operation: str, decision: StatementKind) -> Run:
    run = await installation.start(operation)
    await until_state(run, State.WAITING_APPROVAL)
    message = installation.decision(installation.proposal(operation), "bob", decision)
    await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def approved(installation: Installation, _: Publisher) -> Run:
    """Approved and published."""
    return await _decided(installation, "approved", "approve")


async def approved_after_faults(installation: Installation, press: Publisher) -> Run:
    """Approved; the outside asks to come later, then publishes without saying so."""
    press.fail_next("rate_limited", "error_after")
    return await _decided(installation, "approved-after-faults", "approve")


async def rejected(installation: Installation, _: Publisher) -> Run:
    """Rejected, after a message that cannot be read."""
    run = await installation.start("rejected")
    await until_state(run, State.WAITING_APPROVAL)
    await run.signal("decide", {"decision": "approve"})
    await until_messages(run, 1)
    message = installation.decision(installation.proposal("rejected"), "bob", "reject")
    await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def by_rule(installation: Installation, _: Publisher) -> Run:
    """Granted by rule."""
    run = await installation.start("by-rule", channel="internal")
    await run.result()
    return run


async def cancelled(installation: Installation, _: Publisher) -> Run:
    """Cancelled while people are asked."""
    run = await installation.start("cancelled")
    await until_state(run, State.WAITING_APPROVAL)
    await run.cancel()
    try:
        await run.result()
    except WorkflowFailureError:
        return run
    raise AssertionError("the run went on after its cancel")


async def edited(installation: Installation, _: Publisher) -> Run:
    """Edited by the reviewer, whose edit counts, then published as edited."""
    run = await installation.start("edited")
    await until_state(run, State.WAITING_APPROVAL)
    message = installation.edit(installation.proposal("edited"), "bob", name="half-year.md")
    await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def withdrawn(installation: Installation, _: Publisher) -> Run:
    """Withdrawn by whoever asked."""
    run = await installation.start("withdrawn")
    await until_state(run, State.WAITING_APPROVAL)
    message = installation.command("withdrawn", "rita", "withdraw")
    await run.execute_update("withdraw", message, result_type=Outcome)
    await run.result()
    return run


async def asked_anew(installation: Installation, press: Publisher) -> Run:
    """Granted; the approver loses the role before anything could be sent, and another one approves the new version."""
    press.fail_next("rate_limited")
    run = await installation.start("asked-anew")
    await until_state(run, State.WAITING_APPROVAL)
    first = installation.decision(installation.proposal("asked-anew"), "bob")
    await run.execute_update("decide", first, result_type=Outcome)
    await until_state(run, State.WAITING_RETRY)
    installation.demote("bob", "requester")
    await until_state(run, State.WAITING_APPROVAL)
    second = installation.decision(installation.proposal("asked-anew"), "carl")
    await run.execute_update("decide", second, result_type=Outcome)
    await run.result()
    return run


async def administered(installation: Installation, _: Publisher) -> Run:
    """A person added to the directory by two administrators; nothing is drafted."""
    standing = Standing(roles=frozenset({"reviewer"}))
    change = DirectoryChange(persons=(PersonChange(person="dan", standing=standing),))
    run = await installation.start_unchecked(installation.register_change("administered", change))
    await until_state(run, State.WAITING_APPROVAL)
    for person in ("ben", "cleo"):
        message = installation.decision(installation.proposal("administered"), person)
        await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def failed(installation: Installation, _: Publisher) -> Run:
    """Refused at its opening: started for another request than the signed one."""
    order = installation.register("failed")
    run = await installation.start_unchecked(order.model_copy(update={"request_hash": "sha256:" + "0" * 64}))
    await run.result()
    return run


async def expired(installation: Installation, _: Publisher) -> Run:
    """Undecided at the deadline, which is near in this installation."""
    run = await installation.start("expired")
    await run.result()
    return run


async def waiting(installation: Installation, _: Publisher) -> Run:
    """Still open: people are asked."""
    run = await installation.start("waiting")
    await until_state(run, State.WAITING_APPROVAL)
    return run


async def _waiting(installation: Installation, operation: str) -> Run:
    run = await installation.start(operation)
    await until_state(run, State.WAITING_APPROVAL)
    return run


async def one_of_two(installation: Installation, _: Publisher) -> Run:
    """Open: one of two has approved."""
    run = await _waiting(installation, "one-of-two")
    await vote(installation, run, "bob")
    return run


async def asked_further(installation: Installation, _: Publisher) -> Run:
    """Open: nobody decided, so people were reminded and a further line is asked."""
    run = await installation.start("asked-further")
    await until_state(run, State.ESCALATED)
    return run


async def approved_by_further_line(installation: Installation, press: Publisher) -> Run:
    """Approved by the further line, and published."""
    run = await asked_further(installation, press)
    await vote(installation, run, "lea")
    await run.result()
    return run


async def expired_after_ladder(installation: Installation, press: Publisher) -> Run:
    """Nobody of any line decided."""
    run = await asked_further(installation, press)
    await run.result()
    return run


async def held_at_deadline(installation: Installation, _: Publisher) -> Run:
    """Open: nobody decided, and the run is held."""
    run = await installation.start("held-at-deadline")
    await until_state(run, State.ESCALATED)
    return run


async def in_time_after_outage(installation: Installation, _: Publisher) -> Run:
    """Decided while no worker was there, who came when the deadline had passed."""
    async with installation.workers():
        run = await _waiting(installation, "in-time-after-outage")
    proposal = installation.proposal("in-time-after-outage")
    await run.signal("decide", installation.decision(proposal, "bob", "reject"))
    await installation.after(proposal.deadline)
    async with installation.workers():
        await run.result()
    return run


async def held_by_a_person(installation: Installation, _: Publisher) -> Run:
    """Open: a person has taken it over while people were asked."""
    run = await _waiting(installation, "held-by-a-person")
    await taken_over(installation, run)
    return run


async def carried_out_by_a_person(installation: Installation, _: Publisher) -> Run:
    """Taken over, amended, graded, proposed, approved by another person, and published."""
    run, operation = await _waiting(installation, "carried-out"), "carried-out"
    await taken_over(installation, run)
    content = rewritten(installation, operation, 1, title="Another title")
    await done(installation, run, "lea", "amend", draft_version=1, content=content)
    await done(installation, run, "lea", "grade", draft_version=2)
    await done(installation, run, "lea", "propose", draft_version=2)
    await until_state(run, State.WAITING_APPROVAL)
    await vote(installation, run, "bob")
    await run.result()
    return run


async def released(installation: Installation, _: Publisher) -> Run:
    """Taken over, handed over, released to the agent, approved and published."""
    run = await _waiting(installation, "released")
    await taken_over(installation, run)
    await done(installation, run, "lea", "hand_over", to="leo")
    await done(installation, run, "leo", "release", draft_version=1)
    await until_state(run, State.WAITING_APPROVAL)
    await vote(installation, run, "bob")
    await run.result()
    return run


async def lease_over(installation: Installation, _: Publisher) -> Run:
    """Open: whoever had taken it over let their time pass, and nobody is in control."""
    run = await _waiting(installation, "lease-over")
    await done(installation, run, "lea", "take_over")
    await until_state(run, State.ESCALATED)
    return run


async def brought_before_people(installation: Installation, _: Publisher) -> Run:
    """Open: the policy denies it, and an administrator is asked to look at it."""
    run = await installation.start("brought-before-people")
    await until_state(run, State.ESCALATED)
    return run


async def unanswered(installation: Installation, press: Publisher) -> Run:
    """Nobody looked at it in time."""
    run = await brought_before_people(installation, press)
    await run.result()
    return run


async def frozen(installation: Installation, _: Publisher) -> Run:
    """Open: approved, and held back at the gateway."""
    installation.register("frozen")
    installation.freeze("lea")
    run = await _waiting(installation, "frozen")
    await vote(installation, run, "bob")
    await until_state(run, State.WAITING_RETRY)
    return run


async def unknown(installation: Installation, press: Publisher) -> Run:
    """Open: it may have been published, and the outside cannot be asked."""
    press.fail_next("error_after", *["lookup_unavailable"] * 50)
    run = await _waiting(installation, "unknown")
    await vote(installation, run, "bob")
    await until_state(run, State.OUTCOME_UNKNOWN)
    return run


async def settled_executed(installation: Installation, press: Publisher) -> Run:
    """A person found outside what nobody knew of, and said so."""
    run = await unknown(installation, press)
    await settled(installation, run, "lea", "executed", "report-7")
    await run.result()
    return run


async def settled_not_executed(installation: Installation, press: Publisher) -> Run:
    """A person found that it is not there, and it was published then."""
    press.fail_next("error_before", *["lookup_unavailable"] * 50)
    run = await _waiting(installation, "settled-not-executed")
    await vote(installation, run, "bob")
    await until_state(run, State.OUTCOME_UNKNOWN)
    await settled(installation, run, "lea", "not_executed")
    await run.result()
    return run


async def outside_refused(installation: Installation, press: Publisher) -> Run:
    """The outside would not take it; a person took the run over, and another action was approved and published."""
    press.fail_next("refuses")
    run, operation = await _waiting(installation, "outside-refused"), "outside-refused"
    await vote(installation, run, "bob")
    await until_state(run, State.ESCALATED)
    await taken_over(installation, run)
    content = stored(installation, {**installation.proposal(operation).action.args, "name": "another-name.md"})
    await done(installation, run, "lea", "propose", draft_version=1, content=content)
    await until_state(run, State.WAITING_APPROVAL)
    await vote(installation, run, "bob")
    await run.result()
    return run


async def begun_again(installation: Installation, run: Run) -> Run:
    known = installation.ledger.operations.get(installation.tenant, operation_of(run))
    order = RunOrder(tenant=known.tenant, operation=known.operation, case=known.case, request_hash=known.request_hash)
    return await installation.start_unchecked(order)


async def begun_again_once_executed(installation: Installation, press: Publisher) -> Run:
    """Another run of an operation whose effect is there."""
    again = await begun_again(installation, await approved(installation, press))
    await again.result()
    return again


async def begun_again_while_unknown(installation: Installation, press: Publisher) -> Run:
    """Another run of an operation whose effect may be there: it is found."""
    run = await unknown(installation, press)
    await run.terminate()
    again = await begun_again(installation, run)
    await until_state(again, State.OUTCOME_UNKNOWN)
    press.take_faults()
    await again.result()
    return again


async def superseded(installation: Installation, _: Publisher) -> Run:
    """Another operation took its place."""
    run = await _waiting(installation, "superseded")
    installation.register("successor")
    await done(installation, run, "rita", "supersede", successor="successor")
    await run.result()
    return run


async def ended_by_operator(installation: Installation, _: Publisher) -> Run:
    """Ended by an operator."""
    run = await _waiting(installation, "ended-by-operator")
    await done(installation, run, "lea", "cancel")
    await run.result()
    return run


async def handed_on(installation: Installation, _: Publisher) -> Run:
    """Its history grown long, it goes on in another run."""
    first = await _waiting(installation, "handed-on")
    run_id = first.first_execution_run_id
    present = installation.client.get_workflow_handle(first.id)
    async with asyncio.timeout(30):
        while (await present.describe()).run_id == run_id:
            received = await present.query("status", result_type=RunStatus)
            await present.signal("decide", {"decision": "approve"})
            await until_messages(present, received.messages + 1)
    return installation.client.get_workflow_handle(first.id, run_id=run_id)


async def taken_on(installation: Installation, press: Publisher) -> Run:
    """The run that goes on with it: approved and published."""
    first = await handed_on(installation, press)
    present = installation.client.get_workflow_handle(first.id)
    await vote(installation, present, "bob")
    await present.result()
    run_id = (await present.describe()).run_id
    return installation.client.get_workflow_handle(first.id, run_id=run_id)


async def _asked(installation: Installation, operation: str) -> Run:
    run = await installation.start(operation)
    await until_state(run, State.WAITING_ANSWER)
    return run


async def agent_asks(installation: Installation, _: Publisher) -> Run:
    """Open: the agent waits for an answer."""
    return await _asked(installation, "agent-asks")


async def answered(installation: Installation, _: Publisher) -> Run:
    """Answered, drafted, approved and published."""
    run = await _asked(installation, "answered")
    await run.execute_update("answer", answer(installation, "lea", operation="answered"))
    await until_state(run, State.WAITING_APPROVAL)
    await vote(installation, run, "bob")
    await run.result()
    return run


async def nobody_answered(installation: Installation, _: Publisher) -> Run:
    """Neither those who were asked, nor the further line, answered in time."""
    run = await _asked(installation, "nobody-answered")
    await until_state(run, State.ESCALATED)
    await run.result()
    return run


async def taken_over_from_asking(installation: Installation, _: Publisher) -> Run:
    """Open: a person has taken it over while the agent waited, and left it to the agent, which asks anew."""
    run = await _asked(installation, "taken-over-asking")
    await taken_over(installation, run)
    await done(installation, run, "lea", "release")
    await until_state(run, State.WAITING_ANSWER)
    return run


async def question_handed_on(installation: Installation, _: Publisher) -> Run:
    """The agent waits; its history grown long, it goes on in another run."""
    first = await _asked(installation, "question-handed-on")
    run_id = first.first_execution_run_id
    present = installation.client.get_workflow_handle(first.id)
    async with asyncio.timeout(30):
        while (await present.describe()).run_id == run_id:
            received = await present.query("status", result_type=RunStatus)
            await present.signal("noise")
            await until_messages(present, received.messages + 1)
    return installation.client.get_workflow_handle(first.id, run_id=run_id)


async def question_taken_on(installation: Installation, press: Publisher) -> Run:
    """The run that goes on with it: answered."""
    first = await question_handed_on(installation, press)
    present = installation.client.get_workflow_handle(first.id)
    await until_state(present, State.WAITING_ANSWER)
    await present.execute_update("answer", answer(installation, "lea", operation="question-handed-on"))
    await until_state(present, State.WAITING_APPROVAL)
    run_id = (await present.describe()).run_id
    return installation.client.get_workflow_handle(first.id, run_id=run_id)


def _has_escalated(installation: Installation, operation: str, times: int) -> bool:
    return len(installation.ledger.escalations.of_operation("acme", operation)) == times


async def budget_raised(installation: Installation, _: Publisher) -> Run:
    """Out of budget in the middle of a draft, and again at the grade; raised twice, approved and published."""
    run = await _asked(installation, "budget-raised")
    await run.execute_update("answer", answer(installation, "lea", operation="budget-raised"))
    for number in (1, 2):
        await eventually(partial(_has_escalated, installation, "budget-raised", number))
        await until_state(run, State.ESCALATED)
        await done(installation, run, "lea", "raise_budget", content=stored(installation, {"calls": 1}))
    await until_state(run, State.WAITING_APPROVAL)
    await vote(installation, run, "bob")
    await run.result()
    return run


_ASKED_FURTHER = {"tiers": [{"after": "1s", "role": "admin", "decisions": ["approve"]}]}
_ANSWERED_SOON = {"answering": {"role": "lead", "within": "3s", "at_most": 10, "ladder": _ASKED_FURTHER}}
_ONE_CALL = {
    "budgets": {"run": {"calls": 1}},
    "escalations": {"BUDGET_EXCEEDED": {"role": "lead", "severity": "low"}},
}

WAYS: dict[str, Way] = {
    "administered": Way(administered),
    "agent_asks": Way(agent_asks, agent_asks=True),
    "answered": Way(answered, agent_asks=True),
    "approved": Way(approved),
    "approved_after_faults": Way(approved_after_faults),
    "approved_by_further_line": Way(approved_by_further_line, {"decide_within": "30s", "ladder": LADDER}),
    "asked_anew": Way(asked_anew),
    "asked_further": Way(asked_further, {"decide_within": "30s", "ladder": LADDER}),
    "begun_again_once_executed": Way(begun_again_once_executed),
    "begun_again_while_unknown": Way(begun_again_while_unknown),
    "brought_before_people": Way(brought_before_people, fields=DENIED | _route("1h")),
    "budget_raised": Way(budget_raised, fields=_ONE_CALL, agent_asks=True),
    "by_rule": Way(by_rule),
    "cancelled": Way(cancelled),
    "carried_out_by_a_person": Way(carried_out_by_a_person),
    "edited": Way(edited),
    "ended_by_operator": Way(ended_by_operator),
    "expired": Way(expired, {"decide_within": "2s"}),
    "expired_after_ladder": Way(expired_after_ladder, {"decide_within": "3s", "ladder": LADDER}),
    "failed": Way(failed),
    "frozen": Way(frozen),
    "handed_on": Way(handed_on, grows_long_after=GROWN_LONG),
    "held_at_deadline": Way(held_at_deadline, {"decide_within": "2s", "ladder": {"then": "freeze"}}),
    "held_by_a_person": Way(held_by_a_person),
    "in_time_after_outage": Way(in_time_after_outage, {"decide_within": "3s"}, has_workers=False),
    "lease_over": Way(lease_over, fields={"takeover": {"role": "lead", "lease": "2s"}}),
    "nobody_answered": Way(nobody_answered, fields=_ANSWERED_SOON, agent_asks=True),
    "one_of_two": Way(one_of_two, {"approvals": 2}),
    "outside_refused": Way(outside_refused),
    "question_handed_on": Way(question_handed_on, grows_long_after=GROWN_LONG, agent_asks=True),
    "question_taken_on": Way(question_taken_on, grows_long_after=GROWN_LONG, agent_asks=True),
    "rejected": Way(rejected),
    "released": Way(released),
    "settled_executed": Way(settled_executed),
    "settled_not_executed": Way(settled_not_executed),
    "superseded": Way(superseded),
    "taken_on": Way(taken_on, grows_long_after=GROWN_LONG),
    "taken_over_from_asking": Way(taken_over_from_asking, agent_asks=True),
    "unanswered": Way(unanswered, fields=DENIED | _route("2s")),
    "unknown": Way(unknown),
    "waiting": Way(waiting),
    "withdrawn": Way(withdrawn),
}
