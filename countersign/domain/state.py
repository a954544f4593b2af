"""The states of a run and the one table that says which event leads where."""

from __future__ import annotations

from enum import StrEnum

from countersign.domain.errors import CountersignError


class State(StrEnum):
    """Where a run stands; the comment says who moves next."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"  # the agent and the checks
    WAITING_ANSWER = "WAITING_ANSWER"  # a person, whom the agent asks something while it drafts
    WAITING_APPROVAL = "WAITING_APPROVAL"  # people of the required role
    ESCALATED = "ESCALATED"  # a higher or more expert role
    HUMAN_TAKEOVER = "HUMAN_TAKEOVER"  # the named owner; the agent may call nothing
    EXECUTING = "EXECUTING"  # the gateway
    WAITING_RETRY = "WAITING_RETRY"  # a timer; nothing was sent
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"  # reconciliation by idempotency key
    SUCCEEDED = "SUCCEEDED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    WITHDRAWN = "WITHDRAWN"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"

    @property
    def terminal(self) -> bool:
        """Whether nobody moves next."""
        return self in _TERMINAL


_TERMINAL = frozenset({State.SUCCEEDED, State.REJECTED, State.EXPIRED, State.WITHDRAWN, State.CANCELLED, State.FAILED})


class Event(StrEnum):
    """What can happen to a run."""

    STARTED = "started"
    ASKED = "asked"  # the agent waits for people, in the middle of a draft
    ANSWERED = "answered"
    RAISED = "raised"  # people gave the agent more to spend
    PROPOSED = "proposed"  # the action needs people
    GRANTED_BY_RULE = "granted_by_rule"  # the policy asks nobody
    GRANTED = "granted"  # enough valid statements
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"  # by whoever asked
    EDITED = "edited"  # a reviewer changed the action, so it is proposed anew
    EXPIRED = "expired"
    ESCALATED = "escalated"  # nobody decided so far, or the run cannot go on: further people are asked
    TAKEN_OVER = "taken_over"  # a person is in control, or another one than before
    RELEASED = "released"  # to the agent
    CANCELLED = "cancelled"
    GAVE_UP = "gave_up"  # the draft, its checks, its grade or the policy do not allow a proposal
    EXECUTED = "executed"
    NOT_SENT = "not_sent"  # surely nothing went out
    OUTCOME_UNKNOWN = "outcome_unknown"  # something may have gone out
    REFUSED = "refused"  # the gateway found no valid grant
    VOIDED = "voided"  # the gateway found that something the grant rests on has changed; people are asked anew
    RETRY = "retry"


_ASKED: dict[Event, State] = {
    Event.GRANTED: State.EXECUTING,
    Event.REJECTED: State.REJECTED,
    Event.EDITED: State.RUNNING,
    Event.EXPIRED: State.EXPIRED,
    Event.ESCALATED: State.ESCALATED,
}
"""What can come of an ask, in whichever state people are asked."""

_QUESTIONED: dict[Event, State] = {
    Event.ANSWERED: State.RUNNING,
    Event.EXPIRED: State.EXPIRED,
    Event.ESCALATED: State.ESCALATED,
}
"""What can come of a question of the agent's."""

_TURNED: dict[Event, State] = {
    Event.TAKEN_OVER: State.HUMAN_TAKEOVER,
    Event.RELEASED: State.RUNNING,
    Event.WITHDRAWN: State.WITHDRAWN,
    Event.CANCELLED: State.CANCELLED,
}
"""What people can do with a run whenever surely nothing is on its way."""

TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.CREATED, Event.STARTED): State.RUNNING,
    # A run that is begun again: the operation's effect is there, or may be, and is never asked for anew.
    (State.CREATED, Event.EXECUTED): State.SUCCEEDED,
    (State.CREATED, Event.OUTCOME_UNKNOWN): State.OUTCOME_UNKNOWN,
    (State.CREATED, Event.GAVE_UP): State.FAILED,
    (State.CREATED, Event.CANCELLED): State.CANCELLED,
    (State.RUNNING, Event.ASKED): State.WAITING_ANSWER,
    (State.RUNNING, Event.PROPOSED): State.WAITING_APPROVAL,
    (State.RUNNING, Event.GRANTED_BY_RULE): State.EXECUTING,
    (State.RUNNING, Event.GAVE_UP): State.FAILED,
    (State.RUNNING, Event.ESCALATED): State.ESCALATED,
    (State.HUMAN_TAKEOVER, Event.PROPOSED): State.WAITING_APPROVAL,
    (State.HUMAN_TAKEOVER, Event.GRANTED_BY_RULE): State.EXECUTING,
    (State.HUMAN_TAKEOVER, Event.ESCALATED): State.ESCALATED,
    **{(State.WAITING_ANSWER, event): state for event, state in _QUESTIONED.items()},
    **{(State.WAITING_APPROVAL, event): state for event, state in _ASKED.items()},
    **{(State.ESCALATED, event): state for event, state in (_QUESTIONED | _ASKED).items()},
    (State.ESCALATED, Event.RAISED): State.RUNNING,
    (State.ESCALATED, Event.GAVE_UP): State.FAILED,
    (State.EXECUTING, Event.EXECUTED): State.SUCCEEDED,
    (State.EXECUTING, Event.NOT_SENT): State.WAITING_RETRY,
    (State.EXECUTING, Event.OUTCOME_UNKNOWN): State.OUTCOME_UNKNOWN,
    (State.EXECUTING, Event.REFUSED): State.FAILED,
    (State.EXECUTING, Event.VOIDED): State.RUNNING,
    (State.WAITING_RETRY, Event.RETRY): State.EXECUTING,
    (State.OUTCOME_UNKNOWN, Event.EXECUTED): State.SUCCEEDED,
    (State.OUTCOME_UNKNOWN, Event.NOT_SENT): State.WAITING_RETRY,
    (State.OUTCOME_UNKNOWN, Event.VOIDED): State.RUNNING,
    **{
        (state, event): then
        for state in (
            State.RUNNING,
            State.WAITING_ANSWER,
            State.WAITING_APPROVAL,
            State.ESCALATED,
            State.HUMAN_TAKEOVER,
            State.EXECUTING,
            State.WAITING_RETRY,
        )
        for event, then in _TURNED.items()
    },
}


class IllegalTransition(CountersignError):
    """An event that means nothing in the state where it came; names both."""

    code = "ILLEGAL_TRANSITION"


def after(state: State, event: Event) -> State:
    """The state that `event` leads to.

    Raises:
        IllegalTransition: when the pair is not in the table.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"event {event.value} is not possible in state {state.value}") from None
