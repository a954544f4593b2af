"""`start --supersedes`: one operation in place of another, never both: the old run is ended before the new one starts.

Apart from plain starts, because three things happen in order, and each can be where it stops.
"""

from __future__ import annotations

from pathlib import Path

from countersign.cli.deciding.command_message import Order, accepted, message_of, require_open, what_is_signed
from countersign.cli.rendering import STARTER, say
from countersign.cli.session import Session, SigningKey
from countersign.cli.signed_message import sent
from countersign.cli.situation import RunNow, run_now
from countersign.cli.starting.registering import Intent, Started, register, see_running
from countersign.cli.starting.successors import successor_of
from countersign.domain.decision import Ruling
from countersign.domain.errors import Conflict, Unavailable


def start_instead(
    session: Session, intent: Intent, key: SigningKey, old: str, key_file: Path | None, *, quiet: bool
) -> Started:
    """Register a request, end the run of `old` as superseded by it, then start the new run.

    Unless `quiet`, says what is signed to end the old run, and that it has ended. Given again it goes on from where it
    stopped.

    Raises:
        InputRefused: the old run may not be superseded, by this person or any more; nothing was registered.
        Conflict: the old run refused it: the new operation is registered, and not started.
        Unavailable: no worker has ruled on it yet: as above.
    """
    before = run_now(session, intent.tenant, old)
    ended = successor_of(session, intent.tenant, old) == intent.operation
    if not ended:
        # As a withdrawal, which it is for the old run: the new operation is not registered yet.
        require_open(session, before, Order("withdraw", intent.requester, key_file=key_file))
    registered = register(session, intent, key)
    if not ended:
        order = Order("supersede", intent.requester, key_file=key_file, successor=intent.operation)
        _supersede(session, before, order, quiet=quiet)
    elif not quiet:
        say(f"the run of {old} was ended before, superseded by {intent.operation}")
    run, warnings = see_running(registered.operation)
    current = session.ledger.operations.get(intent.tenant, intent.operation)
    return registered._replace(operation=current, run=run, warnings=warnings)


def _supersede(session: Session, run: RunNow, order: Order, *, quiet: bool) -> None:
    """Send the command; Conflict or Unavailable, with what to do, where it was not accepted."""
    require_open(session, run, order)
    if not quiet:
        say(what_is_signed(run, order))
    signed, message = message_of(session, run, order)
    outcome = sent(message)
    tenant, old = run.operation.tenant, run.operation.operation
    stands = f"operation {order.successor} is registered and not started"
    if outcome is None:
        raise Unavailable(
            f"{stands}: no worker has ended the run of {old} yet; start a worker, and give the same command again"
        )
    if outcome.ruling != Ruling.ACCEPTED:
        raise Conflict(
            f"{stands}: the run of {old} refused to be superseded ({outcome.sentence()}); look at it with:"
            f" {STARTER} brief {old} --tenant {tenant}; to start beside it, give the same command without --supersedes"
        )
    if not quiet:
        say(f"{old}: {accepted(session, signed)}")
