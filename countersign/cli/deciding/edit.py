"""`edit`: other arguments for the proposed action, with the difference shown whole before it is signed.

Apart from the other decisions, because an edit makes a new action first: the case works it out, as the run will again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Annotated, Any, NamedTuple

import typer

from countersign.cases.case import Submission
from countersign.cli import options
from countersign.cli.deciding.arguments import assigned, from_editor
from countersign.cli.deciding.decide import OutFile, sign
from countersign.cli.deciding.decision_message import Choice, decide, keep, pending, pending_or_expired, require_open_to
from countersign.cli.rendering import difference_lines, escaped_lines, fields, say, warn
from countersign.cli.session import Session, known_person, now, opened
from countersign.cli.signed_message import require_accepted
from countersign.domain import edit as edits
from countersign.domain.canonical import canonical_bytes
from countersign.domain.decision import may_edit
from countersign.domain.differences import Difference, differences, facts, line_differences
from countersign.domain.directory import Person
from countersign.domain.edit import Edit
from countersign.domain.errors import InputRefused
from countersign.domain.need import Approver, unmet
from countersign.domain.proposal import Approval, Proposal

Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="An argument's new value, as often as needed; else $EDITOR."
        " Money as 50.00 USD; a bare number is minor units, so 5000 is 50.00 USD.",
    ),
]


class Edited(NamedTuple):
    """What a reviewer's edit comes to."""

    approval: Approval
    edit: Edit
    summary: str
    """What the edited action is called."""
    counts: bool
    """Whether the edit is itself an approval of the edited action."""
    granted: bool
    """Whether nobody else has to approve it then."""
    action_changes: tuple[Difference, ...]
    document_changes: tuple[str, ...]
    live: bytes | None
    """What was published at the edited action's target already."""
    live_changes: tuple[str, ...]

    @property
    def money(self) -> str:
        """What becomes of the amount, as money and not as minor units; empty where the action has none."""
        before, after = self.approval.proposal.action.amount, self.edit.action.amount
        if before == after:
            return f"{after}, as before" if after is not None else ""
        return f"{before or 'none'} -> {after or 'none'}"

    @property
    def follows(self) -> str:
        """What comes of the edit once it is accepted, as it looks now."""
        if self.granted:
            return ", and granted with it"
        return f"; the edited action waits for: {'; '.join(map(str, self.edit.assessment.needs))}"


def edit(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    assignments: Assignments = None,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    yes: options.Yes = False,
    unsigned: options.Unsigned = False,
    as_json: options.AsJson = False,
) -> None:
    """Change arguments of the pending proposal: shows the difference, signs the edited action, sends it.

    Without --set, the program that VISUAL or EDITOR names opens the arguments as JSON; save and close it to go on.
    Every vote so far is void then, and the edited action is put before people; --json asks nothing, so give --yes too.
    """
    if as_json and not yes:
        raise InputRefused("--json: nobody can be shown the difference; give --yes too")
    with opened() as session:
        choice = Choice("edit", person, comment, key, unsigned=unsigned)
        edited = edit_of(session, pending_or_expired(session, tenant, operation), choice, assignments or [])
        if not as_json:
            say(edit_text(edited))
        _warn_of(edited)
        if not yes:
            typer.confirm("\nsign this edit and send it?", abort=True)
        decide(session, edited.approval, _naming(session, edited, choice), as_json, edited.follows)


@sign.command("edit")
def sign_edit(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    assignments: Assignments = None,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign an edit of the pending proposal into a file; the edited action is put into the ledger."""
    with opened() as session:
        choice = Choice("edit", person, comment, key)
        edited = edit_of(session, pending(session, tenant, operation), choice, assignments or [])
        say(edit_text(edited))
        _warn_of(edited)
        keep(session, edited.approval, _naming(session, edited, choice), out)


def edit_of(session: Session, approval: Approval, choice: Choice, assignments: Sequence[str]) -> Edited:
    """The edited action, worked out and ruled on as the run will do it.

    Raises:
        InputRefused: an assignment or an argument of the wrong form, or an edit that would be refused, with the reason;
            for whoever may edit nothing here before their editor is opened.
        NotFound: no such person or key.
        DeniedByPolicy: no policy is in force for it, or its own does not allow the edited action.
    """
    from countersign.bootstrap import cases
    from countersign.cases.editing import worked_out

    tenant, operation = approval.proposal.tenant, approval.proposal.operation
    require_open_to(session, approval, choice)
    with _arguments(approval.proposal.action.args, assignments) as args:
        edit, made = worked_out(session.ledger, cases(session.settings, session.ledger), approval, args, now())
        person = known_person(session, tenant, choice.person)
        at = now()
        used = session.ledger.approvals.approved_by(person, edit.action, at)
        require_accepted(operation, "edit", may_edit(edit, person, approval, at, used))
    return _compared(session, approval, person, edit, made)


def edit_text(edited: Edited) -> str:
    """The amount as money, the difference of the whole action and of the document, and what becomes of the edit."""
    proposal, (action, assessment, _) = edited.approval.proposal, edited.edit
    raised = edits.risks_raised(proposal, action, assessment)
    counts = "as your approval of the edited action" if edited.counts else "as no approval: others must approve it"
    money = ["AMOUNT", *escaped_lines([edited.money]), ""] if edited.money else []
    return "\n".join([
        *money,
        "CHANGES OF THE ACTION", *difference_lines(edited.action_changes),
        "", "CHANGES OF THE DOCUMENT", *(escaped_lines(edited.document_changes) or ["  none"]),
        "", "WHAT LIES AT THE TARGET NOW", *_live_lines(edited), "",
        fields([
            ("edited title", edited.summary),
            ("action hash", f"{proposal.action_hash} (votes on it are void with this edit)"),
            ("new hash", action.hash()),
            ("raises the risk", ", ".join(raised) or "no"),
            ("needs", "; ".join(map(str, assessment.needs)) or "nobody: granted by rule"),
            ("counts", counts),
        ]), "",
    ])  # fmt: skip


def _arguments(args: Mapping[str, Any], assignments: Sequence[str]) -> AbstractContextManager[dict[str, Any]]:
    return nullcontext(assigned(args, assignments)) if assignments else from_editor(args)


def _compared(session: Session, approval: Approval, editor: Person, edit: Edit, made: Submission) -> Edited:
    proposal, needs = approval.proposal, edit.assessment.needs
    counts = edits.edit_counts(proposal, editor.id, edit.action, edit.assessment)
    before = session.ledger.documents.get(proposal.tenant, proposal.document)
    return Edited(
        approval=approval,
        edit=edit,
        summary=made.summary,
        counts=counts,
        granted=not needs or (counts and not unmet(needs, {editor.id: Approver(editor, timedelta(0))})),
        action_changes=_action_changes(proposal, edit),
        document_changes=line_differences(_text(before), _text(made.document)),
        live=made.live,
        live_changes=line_differences(_text(made.live or b""), _text(made.document)),
    )


def _text(document: bytes) -> str:
    return document.decode("utf-8", "backslashreplace")


def _live_lines(edited: Edited) -> list[str]:
    if edited.live is None:
        return ["  nothing that was published from here"]
    return escaped_lines(edited.live_changes) or ["  the very same document"]


def _warn_of(edited: Edited) -> None:
    if edited.edit.action.amount != edited.approval.proposal.action.amount:
        warn(f"other money moves by this edit: {edited.money}")
    if edited.live is not None:
        warn(
            f"something was published at {edited.edit.action.target} before; a channel may refuse to put anything else"
            " there, and the run then fails: choose another name if that is not wanted"
        )


def _action_changes(proposal: Proposal, edit: Edit) -> tuple[Difference, ...]:
    before, after = (facts(one.model_dump(mode="json")) for one in (proposal.action, edit.action))
    return differences(before, after)


def _naming(session: Session, edited: Edited, choice: Choice) -> Choice:
    """The choice with the edited action, which is put where the run looks for it; its hash there is its own."""
    action = edited.edit.action
    stored = session.ledger.documents.put(action.tenant, canonical_bytes(action.model_dump(mode="json")))
    return choice._replace(edited_action=stored, edited_summary=edited.summary)
