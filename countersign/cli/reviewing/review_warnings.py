"""What could deceive a reader of a proposal: characters that cannot be seen, mixed scripts, names like other names.

Apart from the review itself: here it is only looked for, in every text that is shown, against what the tenant knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from countersign.cli.session import Session
from countersign.domain.administration import ADMINISTRATION
from countersign.domain.differences import facts
from countersign.domain.lookalikes import looks_like, mixed_scripts
from countersign.domain.proposal import Approval, Proposal
from countersign.domain.visible import unseen

_LONG_BLANK = " " * 12


class Known(NamedTuple):
    """Names that a reader may take another one for."""

    targets: frozenset[str]
    """What the tenant's operations were ever about, this one too."""
    channels: frozenset[str]
    persons: frozenset[str]
    voters: frozenset[str]
    """Who has decided about this ask so far."""


def known_names(session: Session, proposal: Proposal, persons: Iterable[str], versions: Sequence[Approval]) -> Known:
    """What the tenant knows: targets of all that was ever asked, channels, persons.

    Args:
        session: the open ledger.
        proposal: what is looked at.
        persons: ids of everyone in the tenant's directory.
        versions: all versions of the same ask.
    """
    from countersign.bootstrap import load_channels

    return Known(
        targets=frozenset(session.ledger.approvals.targets(proposal.tenant)),
        channels=frozenset(load_channels(session.settings)),
        persons=frozenset(persons),
        voters=frozenset(vote.person for one in versions for vote in one.votes),
    )


def warnings(proposal: Proposal, view: Mapping[str, Any], known: Known) -> tuple[str, ...]:
    """A sentence for each thing that could deceive, naming the place."""
    texts = {
        **facts(proposal.model_dump(mode="json")),
        **facts({"claims": view["claims"]}),
        **dict(view.get("words", ())),
    }
    shown = {**texts, "document": view["document"], "live": view["live"] or ""}
    return tuple(
        dict.fromkeys(
            [*_escalated(proposal), *_unseen(shown), *_padded(texts), *_mixed(texts), *_alike(proposal, known)]
        )
    )


def _escalated(proposal: Proposal) -> Iterator[str]:
    """What was wrong with the run before people stepped in: nothing of a later version shows it."""
    for reason in proposal.brought_before_people:
        yield f"before this the run was brought before people as {reason.value}; read why: brief {proposal.operation}"


def _unseen(texts: Mapping[str, str]) -> Iterator[str]:
    for place, text in texts.items():
        hidden = unseen(place + text)
        if hidden:
            yield f"{place} holds characters that cannot be seen; they are written out here: {', '.join(hidden)}"


def _padded(texts: Mapping[str, str]) -> Iterator[str]:
    for place, text in texts.items():
        if _LONG_BLANK in text:
            yield f"{place} holds a long run of blanks, behind which text can look like a line of its own"


def _mixed(texts: Mapping[str, str]) -> Iterator[str]:
    for place, text in texts.items():
        words = mixed_scripts(text)
        if words:
            yield f"{place} mixes scripts within a word, so letters may not be what they look like: {', '.join(words)}"


def _alike(proposal: Proposal, known: Known) -> Iterator[str]:
    """Names that are not another known one, but look like it."""
    for kind, names, others in _names(proposal, known):
        for name in names:
            for other in looks_like(name, others):
                yield f"{kind} {name} looks like {other}, which is another {kind}"


def _names(proposal: Proposal, known: Known) -> Iterator[tuple[str, Sequence[str], frozenset[str]]]:
    action = proposal.action
    yield "target", [action.target], known.targets
    yield "name", [_name(action.target)], frozenset(_name(target) for target in known.targets)
    yield "channel", [action.channel], known.channels
    persons = {proposal.requester, *proposal.authors, *known.voters}
    if proposal.case == ADMINISTRATION:
        persons |= _persons_of(action.args.get("change"))
    yield "person", sorted(persons), known.persons | persons


def _name(target: str) -> str:
    return target.rpartition(":")[2]


def _persons_of(change: Any) -> set[str]:
    """Everyone whom a change of the directory names."""
    entries = [entry for part in ("persons", "keys_added", "keys_revoked") for entry in change.get(part, [])]
    return {str(entry["person"]) for entry in entries}
