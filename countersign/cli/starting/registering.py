"""From a request to a registered, signed operation and its run: the one way for every case.

Apart from the commands that ask: `start` for what is drafted; `compensate` for taking back; `directory`, `keys`,
`policy` and `unfreeze` for changes of authority. `resume` has the run of what stands registered started again.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from countersign.cli.errors import in_plain_words
from countersign.cli.rendering import STARTER, fields, moment
from countersign.cli.session import OPERATOR, Session, SigningKey, finished, new_id, now
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import InputRefused, NotAuthorised, NotFound, Unavailable
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation, RequestStatement

Run = Literal["started", "already running", "finished", "not started"]
"""What this call found or did: the run started by it, one that goes on, an operation that has its end, or no run."""


class Intent(NamedTuple):
    """What somebody asks for, before it is signed."""

    tenant: str
    requester: str
    case: str
    operation: str
    document: bytes
    """The request in canonical form."""
    follows: str = ""
    """The operation on whose receipt it rests, where there is one."""
    followers: tuple[Intent, ...] = ()
    """What is signed and registered behind it, in one go."""


class Started(NamedTuple):
    """What became of a start."""

    operation: Operation
    first: bool
    """Whether this call registered the operation; else it stands as the first start left it."""
    run: Run
    warnings: list[str]
    closed_set_up: bool = False
    """Whether this call ended the tenant's first set-up."""


def require_asker(session: Session, tenant: str, case: str, person: str) -> None:
    """Refuse at once what the run would refuse: an operation id that stands registered cannot be used again.

    Raises:
        NotFound: no policy for the case is in force.
        NotAuthorised: the person does not have the role that may ask for operations of the case.
    """
    policy = session.ledger.directory.policies(tenant).get(case)
    if policy is None:
        todo = f"; put the policy files in force with: {STARTER} directory apply FILE"
        how = todo if session.ledger.directory.set_up_open(tenant) else ""
        raise NotFound(f"tenant {tenant} has no policy {case!r} in force, so nothing of it can be asked for{how}")
    known = session.ledger.directory.person(tenant, person)
    if known is None or not known.may(policy.asked_by):
        raise NotAuthorised(
            "requester",
            f"person {person} may not ask for operations of case {case} in tenant {tenant}: an active person with the"
            f" role {policy.asked_by} may; see: {STARTER} directory show --tenant {tenant}",
        )


def derived_id(prefix: str, document: bytes) -> str:
    """An operation id for a request that nobody named: the same request always gets the same one."""
    return f"{prefix}-{sha256_hex(document).removeprefix('sha256:')[:12]}"


def register_and_start(session: Session, intent: Intent, key: SigningKey) -> Started:
    """Register a request and start its run; raises what `register` and `see_running` raise."""
    registered = register(session, intent, key)
    run, warnings = see_running(registered.operation)
    current = session.ledger.operations.get(intent.tenant, intent.operation)
    return registered._replace(operation=current, run=run, warnings=warnings)


def register(session: Session, intent: Intent, key: SigningKey) -> Started:
    """End the tenant's first set-up where it is open, sign and register the request and what is to follow it; its run
    is not started.

    Raises:
        InputRefused: the first set-up cannot end yet, since nobody could change the directory afterwards.
        Conflict: the operation id stands for another request already.
    """
    closed = _set_up_closed(session, intent.tenant)
    operation, first = _registered(session, intent, key)
    # What ended without an effect is followed by nothing more than it was then.
    for behind in () if operation.state.terminal else intent.followers:
        _registered(session, behind, key)
    return Started(operation, first, "not started", [], closed)


def _registered(session: Session, intent: Intent, key: SigningKey) -> tuple[Operation, bool]:
    """The operation as it stands registered, and whether it is by this very statement."""
    unsigned = Operation(
        tenant=intent.tenant,
        operation=intent.operation,
        case=intent.case,
        request_hash=session.ledger.documents.put(intent.tenant, intent.document),
        requester=intent.requester,
        statement="",
        registered_at=now(),
        follows=intent.follows,
    )
    signed = unsigned.model_copy(update={"statement": _signed(session, unsigned, key)})
    registered = session.ledger.operations.register(signed)
    return registered, registered.statement == signed.statement


def see_running(operation: Operation) -> tuple[Run, list[str]]:
    """See that the operation's run goes on, and what keeps it from that.

    Raises:
        Unavailable: no Temporal server, or one without our search attributes; the registration then stays, and the
            same start again goes on from it.
    """
    # The ledger remembers an end for longer than Temporal keeps a closed run's id from being used again.
    if operation.state.terminal:
        return "finished", []
    try:
        return finished(_run(operation))
    except Exception as error:
        sentence = in_plain_words(error)
        if sentence is None:
            raise
        raise Unavailable(f"{sentence}; the operation is registered; give the same command again") from None


def started_lines(started: Started) -> str:
    """What became of a start, for people."""
    operation = started.operation
    before = f" (the same request was registered before, at {moment(operation.registered_at)})"
    closed = "is closed now: for every change of who may do what, one admin asks and two others approve"
    return fields([
        ("first set-up", closed if started.closed_set_up else ""),
        ("operation", operation.operation),
        ("workflow id", workflow_id(operation.tenant, operation.operation)),
        ("state", f"{started.run}: {operation.state}{'' if started.first else before}"),
    ])  # fmt: skip


def _set_up_closed(session: Session, tenant: str) -> bool:
    try:
        return session.ledger.directory.close_set_up(tenant, OPERATOR, now())
    except InputRefused as refused:
        raise InputRefused(
            f"the first set-up of tenant {tenant} cannot end yet: {refused.message}; complete it with: {STARTER}"
            f" directory apply FILE, and: {STARTER} keys new PERSON --tenant {tenant}"
        ) from None


def _signed(session: Session, operation: Operation, key: SigningKey) -> str:
    from countersign.signing.statements import sign_request

    statement = RequestStatement(
        installation=session.settings.installation, person=operation.requester, key_id=key.id,
        tenant=operation.tenant, operation=operation.operation, request_hash=operation.request_hash,
        issued_at=operation.registered_at, id=new_id(),
    )  # fmt: skip
    return sign_request(statement, key.private)


async def _run(operation: Operation) -> tuple[Run, list[str]]:
    from countersign.cli.temporal_run import start_run, unattended
    from countersign.temporal_client import connect

    client = await connect()
    started = await start_run(client, operation)
    return "started" if started else "already running", list(await unattended(client))
