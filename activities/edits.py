"""The edit that a statement asks for, as the run works it out before it rules on it.

The message names the edited action by hash alone; what counts is what its arguments come to here (G14).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import ValidationError

from countersign.cases.case import Case
from countersign.cases.editing import worked_out
from countersign.domain.action import Action
from countersign.domain.decision import Statement
from countersign.domain.edit import Edit
from countersign.domain.errors import Conflict, CountersignError, InputRefused, NotFound, Unavailable
from countersign.domain.policy import Answer, Assessment
from countersign.ports import Ledger

_NOTHING = Assessment(answer=Answer.DENIED, rules=(), needs=())


def edit_of(ledger: Ledger, cases: Mapping[str, Case], statement: Statement, now: datetime) -> Edit | None:
    """What an edit makes of the current proposal; nothing for other decisions, or where nothing can be made of it."""
    if statement.decision != "edit":
        return None
    approval = ledger.approvals.current(statement.tenant, statement.operation)
    action = edited_action(ledger, statement.tenant, statement.edited_action)
    if approval is None or action is None:
        return None
    try:
        return worked_out(ledger, cases, approval, action.args, now).edit
    except Unavailable:
        raise
    except CountersignError as refused:
        return Edit(action, _NOTHING, refused.message)


def edited_action(ledger: Ledger, tenant: str, sha256: str) -> Action | None:
    """The action that an edit names by its hash, if it is one: anybody can have put anything under that hash."""
    try:
        action = Action.model_validate_json(ledger.documents.get(tenant, sha256))
        return action if action.hash() == sha256 else None
    except (NotFound, Conflict, InputRefused, ValidationError):
        return None
