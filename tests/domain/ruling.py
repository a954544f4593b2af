"""Who rules on what in tests of special decisions: persons with limits, terms that allow everything, and one edit.

Apart from the tests because those about money and missing signatures start from the same.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Background, Outcome, rule_on
from countersign.domain.edit import Edit
from countersign.domain.money import amount
from countersign.domain.need import Need
from countersign.domain.policy import Answer, Assessment, BreakGlass, Editing, Terms
from countersign.domain.proposal import Proposal, Vote
from tests.domain.samples import NOW, a_need, a_person, a_proposal, a_statement, a_vote, an_action, an_approval

LIMITS = [{"each": "1000.00 EUR", "total": "1500.00 EUR", "within": "24h"}, {"each": "10.00 USD"}]
PERSONS = {
    person.id: person
    for person in [
        a_person("rita", "requester", "reviewer", "officer"),
        a_person("bob", "reviewer", limits=LIMITS),
        a_person("carl", "reviewer"),
        a_person("lena", "lawyer"),
        a_person("olga", "officer"),
        a_person("otto", "officer", limits=[{"each": "9.00 EUR"}]),
        a_person("omar", "operator"),
    ]
}
ALL = ("approve", "edit", "reject")
ONE, TWO = a_need(decisions=ALL), a_need(approvals=2, decisions=ALL)
TERMS = Terms(
    editing=Editing(fields=("title",), raises_risk=("target",)), break_glass=BreakGlass(role="officer", approvals=2)
)
REASON_HASH = sha256_hex(b"the building is on fire")
OLGA, OTTO = a_vote("olga", "break_glass"), a_vote("otto", "break_glass")


def ruled(
    who: str, does: str, proposal: Proposal, *votes: Vote, signed: Any = None, now: datetime = NOW, **known: Any
) -> Outcome:
    statement = a_statement(proposal, person=who, decision=does, **(signed or {}))
    background = Background(PERSONS, now, **known)
    return rule_on(statement, PERSONS[who], an_approval(proposal, votes=votes), background)


def proposed(*needs: Need, money: str | None = None, **changes: Any) -> Proposal:
    action = an_action(amount=amount(money) if money else None)
    return a_proposal(*(needs or (ONE,)), **{"action": action, "terms": TERMS, **changes})


def an_edit(*needs: Need, problem: str = "", money: str | None = None, **changes: Any) -> Edit:
    args = {"channel": "public", "name": "report-1.md", "title": "Sales of Q2"}
    action = an_action(**{"args": args, "amount": amount(money) if money else None, **changes})
    return Edit(action, Assessment(answer=Answer.PEOPLE, rules=("r",), needs=needs or (ONE,)), problem)


def edits(who: str, edit: Edit | None, *votes: Vote, proposal: Proposal | None = None, **known: Any) -> Outcome:
    named = edit.action.hash() if edit is not None else sha256_hex(b"lost")
    return ruled(who, "edit", proposal or proposed(), *votes, signed={"edited_action": named}, edit=edit, **known)
