"""`amend` and `propose`: what the person in control makes of a run, shown whole before it is signed.

Apart from the other commands, because these have a content: it goes to the ledger, and its hash is signed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from countersign.cli import options
from countersign.cli.deciding.arguments import assigned, from_editor, json_object
from countersign.cli.deciding.command_message import Order, command, require_open
from countersign.cli.deciding.edit import Assignments
from countersign.cli.rendering import difference_lines, escaped_lines, say, warn
from countersign.cli.session import Session, opened
from countersign.cli.situation import RunNow, case_of_drafts, is_drafted, run_now
from countersign.domain.canonical import canonical_bytes
from countersign.domain.differences import differences, facts, line_differences
from countersign.domain.draft import DraftObject
from countersign.domain.errors import DeniedByPolicy, InputRefused
from countersign.domain.values import Sha256, Value, first_problem

DraftFile = Annotated[
    Path | None, typer.Option("--draft", metavar="FILE", help="The whole new draft as JSON; else $EDITOR.")
]
NEW = "the new draft"


def amend(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    draft: DraftFile = None,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a draft version of your own beside the agent's, in a run that you are in control of.

    Without --draft, the program that VISUAL or EDITOR names opens the latest version as JSON; save and close it to go
    on. Shows the difference to that version before it is signed; --json asks nothing, so give --yes too.
    """
    _require_shown(as_json, yes)
    with opened() as session:
        run = run_now(session, tenant, operation)
        order = Order("amend", person, comment, key, draft_version=run.standing.draft_version)
        require_open(session, run, order)
        if not is_drafted(session, run):
            raise InputRefused(f"operation {operation}: nothing is drafted there; propose with --set, or end it")
        case = case_of_drafts(session, run)
        before = session.ledger.drafts.get(tenant, operation, order.draft_version) if order.draft_version else None
        with _typed(before, draft) as typed:
            after = _draft(typed, case.form)
            if after == before:
                raise InputRefused(f"{NEW} is v{order.draft_version} as it was; nothing was changed")
        if not as_json:
            say("\n".join(_changes(before, after, case.prose)))
        _confirm(f"sign this as v{order.draft_version + 1}?", yes)
        content = session.ledger.documents.put(tenant, canonical_bytes(after))
        command(session, run, order._replace(content=content), as_json)


def propose(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    version: options.Version,
    person: options.Signer,
    assignments: Assignments = None,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
) -> None:
    """Put a draft version before people in your own name, in a run that you are in control of.

    Whoever wrote or proposed it may not approve it. With --set it is proposed with other arguments than the draft comes
    to; the difference is shown before it is signed, and --json then asks nothing, so give --yes too.
    """
    with opened() as session:
        run = run_now(session, tenant, operation)
        order = Order("propose", person, comment, key, draft_version=version)
        require_open(session, run, order)
        if assignments:
            _require_shown(as_json, yes)
            order = order._replace(content=_arguments(session, run, version, assignments, yes, as_json))
        if version and not session.ledger.drafts.passed(tenant, operation, version):
            warn(f"v{version} has not passed the checks and a grade; nothing is proposed before it has")
        command(session, run, order, as_json)


def _require_shown(as_json: bool, yes: bool) -> None:
    if as_json and not yes:
        raise InputRefused("--json: nobody can be shown the difference; give --yes too")


def _confirm(question: str, yes: bool) -> None:
    if not yes:
        typer.confirm(f"\n{question}", abort=True)


def _typed(before: DraftObject | None, file: Path | None) -> AbstractContextManager[dict[str, Any]]:
    if file is not None:
        return nullcontext(json_object(file.read_bytes(), str(file)))
    if before is None:
        raise InputRefused(
            "nothing was drafted yet, so there is nothing to change; give the whole draft by --draft FILE"
        )
    return from_editor(before, "draft", "--draft FILE")


def _draft(typed: dict[str, Any], form: type[Value]) -> DraftObject:
    """What was typed, with every field of its form, in the form's own order."""
    try:
        draft: DraftObject = form.model_validate_json(json.dumps(typed)).model_dump(mode="json")
    except ValidationError as error:
        raise InputRefused(f"{NEW}: {first_problem(error)}") from None
    return draft


def _changes(before: DraftObject | None, after: DraftObject, prose: Sequence[str]) -> list[str]:
    """Each text that is read as one line by line, and every other place that differs."""
    before = before or {}
    old, new = (facts({name: one[name] for name in one if name not in prose}) for one in (before, after))
    return [
        *(line for name in prose for line in (*_text_changes(before, after, name, alone=len(prose) == 1), "")),
        "CHANGES OF THE REST", *(difference_lines(differences(old, new)) or ["  none"]),
    ]  # fmt: skip


def _text_changes(before: DraftObject, after: DraftObject, name: str, *, alone: bool) -> list[str]:
    old, new = (str(one.get(name, "")) for one in (before, after))
    head = "CHANGES OF THE TEXT" if alone else f"CHANGES OF THE TEXT: {name}"
    return [head, *(escaped_lines(line_differences(old, new)) or ["  none"])]


def _arguments(
    session: Session, run: RunNow, version: int, assignments: Sequence[str], yes: bool, as_json: bool
) -> Sha256:
    """Hash of the arguments with the assignments made, shown and stored.

    Raises:
        InputRefused: no argument of that name, or a value that is not of its form or that the checks refuse.
        DeniedByPolicy: no policy is in force for the case.
    """
    from countersign.bootstrap import cases

    if run.policy is None:
        raise DeniedByPolicy(f"no policy {run.operation.case!r} is in force, so nothing can be proposed")
    case = cases(session.settings, session.ledger)[run.operation.case]
    label = run.policy.label()
    before = dict(case.submission(run.operation, version, label).action.args)
    after = assigned(before, assignments)
    problem = case.submission(run.operation, version, label, after).problem
    if problem:
        raise InputRefused(f"--set: {problem}")
    if not as_json:
        say("\n".join(["CHANGES OF THE ARGUMENTS", *difference_lines(differences(facts(before), facts(after)))]))
    _confirm("sign and propose these?", yes)
    return session.ledger.documents.put(run.operation.tenant, canonical_bytes(after))
