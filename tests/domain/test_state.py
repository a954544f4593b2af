"""The state table, written out a second time by hand: a pair that is not here is an error that names both."""

from __future__ import annotations

import itertools

import pytest

from countersign.domain.state import TRANSITIONS, Event, IllegalTransition, State, after

LEGAL = """
CREATED started -> RUNNING
CREATED gave_up -> FAILED
CREATED cancelled -> CANCELLED
RUNNING proposed -> WAITING_APPROVAL
RUNNING granted_by_rule -> EXECUTING
RUNNING gave_up -> FAILED
RUNNING cancelled -> CANCELLED
WAITING_APPROVAL granted -> EXECUTING
WAITING_APPROVAL rejected -> REJECTED
WAITING_APPROVAL edited -> RUNNING
WAITING_APPROVAL withdrawn -> WITHDRAWN
WAITING_APPROVAL expired -> EXPIRED
WAITING_APPROVAL cancelled -> CANCELLED
EXECUTING executed -> SUCCEEDED
EXECUTING not_sent -> WAITING_RETRY
EXECUTING outcome_unknown -> OUTCOME_UNKNOWN
EXECUTING refused -> FAILED
EXECUTING voided -> RUNNING
WAITING_RETRY retry -> EXECUTING
WAITING_RETRY cancelled -> CANCELLED
OUTCOME_UNKNOWN executed -> SUCCEEDED
OUTCOME_UNKNOWN not_sent -> WAITING_RETRY
""".strip().splitlines()
TABLE = {(State(line.split()[0]), Event(line.split()[1])): State(line.split()[3]) for line in LEGAL}
TERMINAL = {State.SUCCEEDED, State.REJECTED, State.EXPIRED, State.WITHDRAWN, State.CANCELLED, State.FAILED}
PAIRS = list(itertools.product(State, Event))


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=[f"{state}-{event}" for state, event in PAIRS])
def test_every_pair_leads_where_the_table_says_or_is_refused_by_name(state: State, event: Event) -> None:
    if (state, event) in TABLE:
        assert after(state, event) == TABLE[state, event]
    else:
        with pytest.raises(IllegalTransition) as refused:
            after(state, event)
        assert state.value in refused.value.message
        assert event.value in refused.value.message


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
    """Only a look-up settles it: executed after all, or surely not sent."""
    ways_out = {event for (start, event) in TRANSITIONS if start == State.OUTCOME_UNKNOWN}

    assert ways_out == {Event.EXECUTED, Event.NOT_SENT}


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize("event", [Event.EDITED, Event.VOIDED])
def test_what_was_edited_or_voided_is_proposed_anew_before_it_can_be_executed(event: Event) -> None:
    """Neither leads to execution itself: people, or a rule, are asked about the next version first."""
    ends = {end for (_, happened), end in TRANSITIONS.items() if happened == event}

    assert ends == {State.RUNNING}
    assert after(State.RUNNING, Event.PROPOSED) == State.WAITING_APPROVAL
    with pytest.raises(IllegalTransition):
        after(State.RUNNING, Event.GRANTED)
