"""The state table, written out a second time by hand: a pair that is not here is an error that names both."""

from __future__ import annotations

import itertools

import pytest

from countersign.domain.state import TRANSITIONS, Event, IllegalTransition, State, after

LEGAL = """
CREATED started -> RUNNING
CREATED executed -> SUCCEEDED
CREATED outcome_unknown -> OUTCOME_UNKNOWN
CREATED gave_up -> FAILED
CREATED cancelled -> CANCELLED
RUNNING asked -> WAITING_ANSWER
RUNNING proposed -> WAITING_APPROVAL
RUNNING granted_by_rule -> EXECUTING
RUNNING gave_up -> FAILED
RUNNING escalated -> ESCALATED
RUNNING taken_over -> HUMAN_TAKEOVER
RUNNING released -> RUNNING
RUNNING withdrawn -> WITHDRAWN
RUNNING cancelled -> CANCELLED
WAITING_ANSWER answered -> RUNNING
WAITING_ANSWER expired -> EXPIRED
WAITING_ANSWER escalated -> ESCALATED
WAITING_ANSWER taken_over -> HUMAN_TAKEOVER
WAITING_ANSWER released -> RUNNING
WAITING_ANSWER withdrawn -> WITHDRAWN
WAITING_ANSWER cancelled -> CANCELLED
WAITING_APPROVAL granted -> EXECUTING
WAITING_APPROVAL rejected -> REJECTED
WAITING_APPROVAL edited -> RUNNING
WAITING_APPROVAL expired -> EXPIRED
WAITING_APPROVAL escalated -> ESCALATED
WAITING_APPROVAL taken_over -> HUMAN_TAKEOVER
WAITING_APPROVAL released -> RUNNING
WAITING_APPROVAL withdrawn -> WITHDRAWN
WAITING_APPROVAL cancelled -> CANCELLED
ESCALATED answered -> RUNNING
ESCALATED raised -> RUNNING
ESCALATED granted -> EXECUTING
ESCALATED rejected -> REJECTED
ESCALATED edited -> RUNNING
ESCALATED expired -> EXPIRED
ESCALATED escalated -> ESCALATED
ESCALATED gave_up -> FAILED
ESCALATED taken_over -> HUMAN_TAKEOVER
ESCALATED released -> RUNNING
ESCALATED withdrawn -> WITHDRAWN
ESCALATED cancelled -> CANCELLED
HUMAN_TAKEOVER proposed -> WAITING_APPROVAL
HUMAN_TAKEOVER granted_by_rule -> EXECUTING
HUMAN_TAKEOVER escalated -> ESCALATED
HUMAN_TAKEOVER taken_over -> HUMAN_TAKEOVER
HUMAN_TAKEOVER released -> RUNNING
HUMAN_TAKEOVER withdrawn -> WITHDRAWN
HUMAN_TAKEOVER cancelled -> CANCELLED
EXECUTING executed -> SUCCEEDED
EXECUTING not_sent -> WAITING_RETRY
EXECUTING outcome_unknown -> OUTCOME_UNKNOWN
EXECUTING refused -> FAILED
EXECUTING voided -> RUNNING
EXECUTING taken_over -> HUMAN_TAKEOVER
EXECUTING released -> RUNNING
EXECUTING withdrawn -> WITHDRAWN
EXECUTING cancelled -> CANCELLED
WAITING_RETRY retry -> EXECUTING
WAITING_RETRY taken_over -> HUMAN_TAKEOVER
WAITING_RETRY released -> RUNNING
WAITING_RETRY withdrawn -> WITHDRAWN
WAITING_RETRY cancelled -> CANCELLED
OUTCOME_UNKNOWN executed -> SUCCEEDED
OUTCOME_UNKNOWN not_sent -> WAITING_RETRY
OUTCOME_UNKNOWN voided -> RUNNING
""".strip().splitlines()
TABLE = {(State(line.split()[0]), Event(line.split()[1])): State(line.split()[3]) for line in LEGAL}
TERMINAL = {State.SUCCEEDED, State.REJECTED, State.EXPIRED, State.WITHDRAWN, State.CANCELLED, State.FAILED}
PAIRS = list(itertools.product(State, Event))

ILLEGAL = [
    # what would happen, in whose words; state and event
    ("the agent gives up while a person is in control", State.HUMAN_TAKEOVER, Event.GAVE_UP),
    ("the agent's old grant is executed while a person is in control", State.HUMAN_TAKEOVER, Event.EXECUTED),
    ("people's old grant counts while a person is in control", State.HUMAN_TAKEOVER, Event.GRANTED),
    ("an expired approval is granted after all", State.EXPIRED, Event.GRANTED),
    ("an expired run is tried again", State.EXPIRED, Event.RETRY),
    ("an expired run is denied by a late no", State.EXPIRED, Event.REJECTED),
    ("a rejected action is granted after all", State.REJECTED, Event.GRANTED),
    ("a rejected action is granted by rule", State.REJECTED, Event.GRANTED_BY_RULE),
    ("a rejected action is tried again", State.REJECTED, Event.RETRY),
    ("what may have been sent is withdrawn", State.OUTCOME_UNKNOWN, Event.WITHDRAWN),
    ("what may have been sent is cancelled", State.OUTCOME_UNKNOWN, Event.CANCELLED),
    ("what may have been sent is sent again", State.OUTCOME_UNKNOWN, Event.RETRY),
    ("what may have been sent is given up", State.OUTCOME_UNKNOWN, Event.GAVE_UP),
    ("what may have been sent goes back to the agent", State.OUTCOME_UNKNOWN, Event.RELEASED),
    ("what was surely not sent succeeds without being sent", State.WAITING_RETRY, Event.EXECUTED),
    ("the agent proposes while the gateway acts", State.EXECUTING, Event.PROPOSED),
    ("people say no while the gateway acts", State.EXECUTING, Event.REJECTED),
    ("the deadline passes while the gateway acts", State.EXECUTING, Event.EXPIRED),
    ("a run that waits for people succeeds without them", State.WAITING_APPROVAL, Event.EXECUTED),
    ("silence of all lines grants by rule", State.ESCALATED, Event.GRANTED_BY_RULE),
    ("the agent goes on while people are asked", State.ESCALATED, Event.PROPOSED),
    ("the agent proposes while it waits for an answer", State.WAITING_ANSWER, Event.PROPOSED),
    ("an answer grants", State.WAITING_ANSWER, Event.GRANTED),
    ("an answer grants by rule", State.WAITING_ANSWER, Event.GRANTED_BY_RULE),
    ("the agent gives up while it waits for an answer", State.WAITING_ANSWER, Event.GAVE_UP),
    ("a question is answered while a person is in control", State.HUMAN_TAKEOVER, Event.ANSWERED),
    ("the agent is given more to spend while a person is in control", State.HUMAN_TAKEOVER, Event.RAISED),
    ("a run acts before it was opened", State.CREATED, Event.GRANTED_BY_RULE),
    ("a run is taken over before it was opened", State.CREATED, Event.TAKEN_OVER),
    *((f"a cancelled run: {event}", State.CANCELLED, event) for event in Event),
    *((f"a run that succeeded: {event}", State.SUCCEEDED, event) for event in Event),
    *((f"a withdrawn run: {event}", State.WITHDRAWN, event) for event in Event),
    *((f"a failed run: {event}", State.FAILED, event) for event in Event),
]


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=[f"{state}-{event}" for state, event in PAIRS])
def test_every_pair_leads_where_the_table_says_or_is_refused_by_name(state: State, event: Event) -> None:
    if (state, event) in TABLE:
        assert after(state, event) == TABLE[state, event]
    else:
        with pytest.raises(IllegalTransition) as refused:
            after(state, event)
        assert state.value in refused.value.message
        assert event.value in refused.value.message


def test_the_table_holds_these_pairs_and_no_other() -> None:
    assert TRANSITIONS == TABLE


@pytest.mark.guarantee("G10")
@pytest.mark.guarantee("G24")
@pytest.mark.guarantee("G30")
@pytest.mark.parametrize(("state", "event"), [case[1:] for case in ILLEGAL], ids=[case[0] for case in ILLEGAL])
def test_what_must_never_happen_is_refused_by_name(state: State, event: Event) -> None:
    with pytest.raises(IllegalTransition) as refused:
        after(state, event)

    assert refused.value.message == f"event {event.value} is not possible in state {state.value}"


@pytest.mark.guarantee("G30")
def test_a_person_in_control_gives_way_to_the_agent_by_a_release_alone() -> None:
    """In particular a lease that is over leads to further people, never back to the agent."""
    to_the_agent = {event for (start, event), end in TRANSITIONS.items()
                    if start == State.HUMAN_TAKEOVER and end == State.RUNNING}  # fmt: skip

    assert to_the_agent == {Event.RELEASED}


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize("state", State)
def test_no_way_leads_out_of_a_terminal_state_and_one_out_of_every_other(state: State) -> None:
    ways_out = [event for (start, event) in TRANSITIONS if start == state]

    assert state.terminal == (state in TERMINAL)
    assert bool(ways_out) != state.terminal


def test_every_state_can_be_reached() -> None:
    reached, waiting = set(), [State.CREATED]
    while waiting:
        state = waiting.pop()
        reached.add(state)
        waiting += [end for (start, _), end in TRANSITIONS.items() if start == state and end not in reached]

    assert reached == set(State)


def test_every_event_means_something() -> None:
    assert {event for _, event in TRANSITIONS} == set(Event)


@pytest.mark.guarantee("G24")
@pytest.mark.parametrize("state", State)
def test_only_a_grant_leads_to_execution(state: State) -> None:
    leading = {event for (start, event), end in TRANSITIONS.items() if start == state and end == State.EXECUTING}

    assert leading <= {Event.GRANTED, Event.GRANTED_BY_RULE, Event.RETRY}


@pytest.mark.guarantee("G36")
def test_an_unknown_outcome_is_neither_sent_again_nor_given_up() -> None:
    """Only a look-up or people settle it: executed after all, surely not sent, or never to be sent under this grant."""
    ways_out = {event for (start, event) in TRANSITIONS if start == State.OUTCOME_UNKNOWN}

    assert ways_out == {Event.EXECUTED, Event.NOT_SENT, Event.VOIDED}


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize("event", [Event.EDITED, Event.VOIDED])
def test_what_was_edited_or_voided_is_proposed_anew_before_it_can_be_executed(event: Event) -> None:
    """Neither leads to execution itself: people, or a rule, are asked about the next version first."""
    ends = {end for (_, happened), end in TRANSITIONS.items() if happened == event}

    assert ends == {State.RUNNING}
    assert after(State.RUNNING, Event.PROPOSED) == State.WAITING_APPROVAL
    with pytest.raises(IllegalTransition):
        after(State.RUNNING, Event.GRANTED)
