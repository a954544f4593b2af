"""All that a person is shown before they decide, put together from the ledger; nothing of it is cut short.

Apart from its text: the same facts are the JSON of `show --review`, and what a web page would show.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

from pydantic import TypeAdapter

from countersign.cli.governing.staffing import idle_roles
from countersign.cli.rendering import STARTER, document
from countersign.cli.reviewing.review_votes import CastVote, cast_votes, comment_of, why_not
from countersign.cli.reviewing.review_warnings import known_names, warnings
from countersign.cli.session import Session, known_person, now
from countersign.cli.situation import is_drafted, run_now
from countersign.cli.standing import control_now, next_tick, tick_line
from countersign.domain.administration import ADMINISTRATION, Change
from countersign.domain.audit import AuditRecord
from countersign.domain.authority_differences import authority_differences
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import may
from countersign.domain.differences import Difference, differences, facts, line_differences
from countersign.domain.directory import Person, Role
from countersign.domain.errors import Conflict
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal, StatementKind
from countersign.domain.values import Value


class Option(Value):
    """Whether the person could take a decision of this kind now."""

    decision: StatementKind
    allowed: bool
    why: str
    """Why not; empty if it is allowed."""


class Version(Value):
    """One version of the ask, and what people said of it."""

    approval_id: str
    approval_version: int
    action_hash: str
    status: ApprovalStatus
    void_reason: str
    """Why its grant became void; empty if it did not."""
    asked_again: str
    """Why it was asked although people had agreed before; empty for a first ask."""
    votes: tuple[CastVote, ...]


class Review(Value):
    """What is known beside the recorded view, which holds the proposal and the document."""

    workflow_id: str
    run_id: str
    view: str
    """Hash of the recorded view."""
    warnings: tuple[str, ...]
    """What could deceive a reader: characters that cannot be seen, mixed scripts, look-alikes, roles without use."""
    changed_since: str
    """The version before, by approval id; empty if there is none."""
    action_changes: tuple[Difference, ...]
    document_changes: tuple[str, ...]
    """Every line of both documents: kept, `-` gone, `+` new; empty if nothing changed."""
    live_changes: tuple[str, ...]
    """The same against what lies at the target now; empty if nothing lies there, or the very same."""
    authority_changes: tuple[Difference, ...]
    """Person by person, or rule by rule, where the action changes who may do what."""
    control: str
    """Who is in control of the run, and since when."""
    asked_now: tuple[Role, ...]
    """The roles that are asked by now."""
    decisions_now: tuple[StatementKind, ...]
    """What anybody may decide by now."""
    next_tick: str
    """When people are reminded, or further ones asked, next; empty if there is nothing more before the deadline."""
    person: str
    """For whom the options are; empty if nobody was named."""
    options: tuple[Option, ...]
    versions: tuple[Version, ...]
    rejection_comment: str
    """What was said with the earlier rejection of an action like this one."""


def review_of(session: Session, approval: Approval, view: Mapping[str, Any], person: str) -> Review:
    """What a person is shown of an approval.

    Args:
        session: the open ledger.
        approval: the operation's latest.
        view: its recorded view, as `reviewers_view` read it.
        person: who looks; empty for anyone.

    Raises:
        NotFound: the tenant has no such person.
    """
    proposal, moment, opened = approval.proposal, now(), _opened(session, approval.proposal)
    every = session.ledger.approvals.of_operation(proposal.tenant, proposal.operation)
    persons = session.ledger.directory.persons(proposal.tenant)
    before = _before(approval, every)
    run, pending = run_now(session, proposal.tenant, proposal.operation), approval.status == ApprovalStatus.PENDING
    return Review(
        workflow_id=workflow_id(proposal.tenant, proposal.operation),
        run_id=str(opened.detail["run_id"]),
        view=str(opened.detail["view"]),
        warnings=(
            *warnings(proposal, view, known_names(session, proposal, persons, every)),
            *_idle_roles(session, proposal, view, moment),
        ),
        changed_since=before.proposal.approval_id if before else "",
        action_changes=_action_changes(before, proposal),
        document_changes=_document_changes(session, before, view["document"]),
        live_changes=line_differences(view["live"], view["document"]) if view["live"] is not None else (),
        authority_changes=_authority_changes(proposal, view, moment),
        control=control_now(run, drafted=is_drafted(session, run)),
        asked_now=proposal.asked(moment) if pending else (),
        decisions_now=tuple(sorted(proposal.offered(moment))) if pending else (),
        next_tick=tick_line(next_tick(approval, moment)),
        person=person,
        options=_options(session, approval, person, moment) if person else (),
        versions=tuple(_version(session, one, persons, moment) for one in every),
        rejection_comment=_rejection_comment(session, proposal),
    )


def reviewers_view(session: Session, approval: Approval) -> dict[str, Any]:
    """The recorded view of an approval: `{"proposal": ..., "document": text, "live": text or null, "claims": [...]}`.

    Raises:
        Conflict: it does not fit the hashes of the proposal that is to be signed.
    """
    proposal = approval.proposal
    recorded = str(_opened(session, proposal).detail["view"])
    view: dict[str, Any] = document(session.ledger.documents, proposal.tenant, recorded)
    shown = Proposal.model_validate_json(json.dumps(view["proposal"]))
    live = "" if view["live"] is None else sha256_hex(view["live"].encode("utf-8"))
    hashes = (shown.action.hash(), sha256_hex(view["document"].encode("utf-8")), live)
    if shown != proposal or hashes != (proposal.action_hash, proposal.action.content_hash, proposal.live):
        raise Conflict(
            f"approval {proposal.approval_id}: its view does not fit its hashes; sign nothing, run: audit verify"
        )
    return view


def _opened(session: Session, proposal: Proposal) -> AuditRecord:
    """The record of its opening, which names the run and the view."""
    for record in session.ledger.audit.records(proposal.tenant, proposal.operation):
        if record.detail.get("approval_id") == proposal.approval_id and record.detail.get("view"):
            return record
    raise Conflict(f"approval {proposal.approval_id}: the audit has no record of its view; run: audit verify")


def _before(approval: Approval, every: Sequence[Approval]) -> Approval | None:
    """The version that it was edited from, else the one that was asked before it."""
    edited_from, mine = approval.proposal.edited_from, approval.proposal.approval_id
    place = next(number for number, one in enumerate(every) if one.proposal.approval_id == mine)
    named = next((one for one in every if one.proposal.approval_id == edited_from), None)
    return named or (every[place - 1] if place else None)


def _action_changes(before: Approval | None, proposal: Proposal) -> tuple[Difference, ...]:
    if before is None:
        return ()
    old, new = (facts(one.action.model_dump(mode="json")) for one in (before.proposal, proposal))
    return differences(old, new)


def _document_changes(session: Session, before: Approval | None, text: str) -> tuple[str, ...]:
    if before is None:
        return ()
    old = session.ledger.documents.get(before.proposal.tenant, before.proposal.document)
    return line_differences(old.decode("utf-8", "backslashreplace"), text)


def _authority_changes(proposal: Proposal, view: Mapping[str, Any], moment: datetime) -> tuple[Difference, ...]:
    if proposal.case != ADMINISTRATION:
        return ()
    return authority_differences(proposal.tenant, view["document"].encode(), view["live"].encode(), moment)


def _idle_roles(session: Session, proposal: Proposal, view: Mapping[str, Any], moment: datetime) -> Sequence[str]:
    if proposal.case != ADMINISTRATION:
        return ()
    change: Change = TypeAdapter(Change).validate_json(view["document"])
    return tuple(idle_roles(change, session.ledger.directory.authority(proposal.tenant), moment))


def _options(session: Session, approval: Approval, name: str, moment: datetime) -> tuple[Option, ...]:
    proposal = approval.proposal
    person = known_person(session, proposal.tenant, name)
    used = session.ledger.approvals.approved_by(person, proposal.action, moment)
    for_anyone = _closed(approval, moment) or _keyless(session, person, moment)
    # It answers a question of the agent's (`answer`), which a proposal is not.
    kinds = [kind for kind in get_args(StatementKind) if kind != "respond"]
    whys = {kind: for_anyone or why_not(may(kind, person, approval, moment, used)) for kind in kinds}
    return tuple(Option(decision=kind, allowed=not why, why=why) for kind, why in whys.items())


def _closed(approval: Approval, moment: datetime) -> str:
    if approval.status != ApprovalStatus.PENDING:
        return f"the proposal is {approval.status.value}"
    return "the deadline has passed" if moment >= approval.proposal.deadline else ""


def _keyless(session: Session, person: Person, moment: datetime) -> str:
    if session.settings.takes_unsigned or person.has_good_key(moment):
        return ""
    return f"you have no key that is good now; make one with: {STARTER} keys new {person.id} --tenant {person.tenant}"


def _version(session: Session, one: Approval, persons: Mapping[str, Person], moment: datetime) -> Version:
    proposal = one.proposal
    return Version(
        approval_id=proposal.approval_id,
        approval_version=proposal.approval_version,
        action_hash=proposal.action_hash,
        status=one.status,
        void_reason=session.ledger.approvals.void_reason(proposal.tenant, proposal.approval_id),
        asked_again=proposal.asked_again,
        votes=cast_votes(session, one, persons, moment),
    )


def _rejection_comment(session: Session, proposal: Proposal) -> str:
    rejection = proposal.earlier_rejection
    if rejection is None or not rejection.comment_hash:
        return ""
    return comment_of(session, proposal.tenant, rejection.comment_hash)
