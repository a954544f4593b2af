"""What a reviewer's edit makes of a proposal: the same for whoever signs it and for the run that rules on it.

Apart from the cases, since this is what they share: an edit names other arguments, and what counts is what those come
to by the case and the policies (G14).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from pydantic import JsonValue

from countersign.cases.assessing import assessed, policy_in_force
from countersign.cases.case import Case, Submission
from countersign.domain.edit import Edit
from countersign.domain.proposal import Approval
from countersign.ports import Ledger


class WorkedOut(NamedTuple):
    """An edit with what it would put before people."""

    edit: Edit
    submission: Submission


def worked_out(
    ledger: Ledger, cases: Mapping[str, Case], approval: Approval, args: Mapping[str, JsonValue], now: datetime
) -> WorkedOut:
    """What other arguments would make of a proposal; what is wrong with them stands in `Edit.problem`.

    Raises:
        InputRefused: the arguments do not have the tool's form.
        DeniedByPolicy: no policy is in force for the case, or the pinned one does not allow the edited action.
    """
    before = approval.proposal
    operation = ledger.operations.get(before.tenant, before.operation)
    policy = policy_in_force(ledger, before.tenant, before.case)
    submission = cases[before.case].submission(operation, before.draft_version, policy.label(), args)
    assessment = assessed(ledger, policy, submission.action, approval, now).assessment
    return WorkedOut(Edit(submission.action, assessment, submission.problem), submission)
