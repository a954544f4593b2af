"""The directory as people write it in a file, and what has to change for the ledger to be as it says.

Apart from the commands, which show and make the change: working it out asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from countersign.domain.administration import DirectoryChange, KeyAddition, PersonChange
from countersign.domain.canonical import sha256_hex
from countersign.domain.directory import Key, Limit, Person, Standing
from countersign.domain.errors import InputRefused
from countersign.domain.identity import PersonId, TenantId
from countersign.domain.values import Instant, Value
from countersign.strict_yaml import load


def _public_key(text: str) -> str:
    from countersign.signing.keys import public_key

    try:
        public_key(text)
    except InputRefused as refused:
        raise ValueError(refused.message) from None
    return text


class Entry(Standing):
    """One person in a file."""

    keys: Annotated[tuple[Annotated[str, AfterValidator(_public_key)], ...], Field(strict=False)] = ()
    """Public keys to be added, of pairs that the persons made themselves; other keys of theirs stay."""

    @property
    def standing(self) -> Standing:
        """The entry without keys, limits in the one order in which they are compared."""
        limits = sorted(self.limits, key=lambda limit: limit.currency)
        return Standing(roles=self.roles, active=self.active, limits=tuple(limits))


def _entry(fields: Any) -> Any:
    if isinstance(fields, str):
        raise ValueError(f"roles are a list; write [{fields}]")
    return {"roles": fields} if isinstance(fields, list) else fields


class DirectoryFile(Value):
    """The form of a directory file."""

    tenants: Annotated[dict[TenantId, dict[PersonId, Annotated[Entry, BeforeValidator(_entry)]]], Field(min_length=1)]
    """Tenant, person, and either a list of roles or an Entry; whoever of a named tenant is not in it becomes
    inactive."""


def read_directory(file: Path) -> DirectoryFile:
    """The file; ConfigurationRefused names the field that is wrong."""
    return load(file, DirectoryFile)


def change_to(wanted: Mapping[str, Entry], known: Mapping[str, Person], now: Instant) -> DirectoryChange:
    """What has to change for a tenant's directory to be as the file says; empty if it is."""
    persons = [
        PersonChange(person=name, standing=entry.standing)
        for name, entry in wanted.items()
        if name not in known or known[name].standing != entry.standing
    ]
    gone = [person for name, person in known.items() if name not in wanted and person.active]
    persons += [PersonChange(person=p.id, standing=p.standing.model_copy(update={"active": False})) for p in gone]
    added = [
        KeyAddition(person=name, key=new_key(text, now))
        for name, entry in wanted.items()
        for text in entry.keys
        if name not in known or all(key.public_key != text for key in known[name].keys)
    ]
    return DirectoryChange(persons=tuple(persons), keys_added=tuple(added))


def new_key(public: str, now: Instant, end: Instant | None = None) -> Key:
    """A public key as the directory keeps it, under an id that follows from it."""
    return Key(id=f"k-{sha256_hex(public.encode())[7:23]}", public_key=public, not_before=now, not_after=end)


def described(tenant: str, change: DirectoryChange, known: Mapping[str, Person]) -> Iterator[str]:
    """Each part of a change as a line: `+ acme/rita: requester`, `~ acme/bob: reviewer -> admin`."""
    for entry in change.persons:
        person = known.get(entry.person)
        after = in_words(entry.standing)
        if person is None:
            yield f"+ {tenant}/{entry.person}: {after}"
        elif person.active and not entry.standing.active:
            kept = in_words(entry.standing.model_copy(update={"active": True}))
            yield f"- {tenant}/{entry.person}: {in_words(person)} -> {kept}, becomes inactive"
        else:
            yield f"~ {tenant}/{entry.person}: {in_words(person)} -> {after}"
    for added in change.keys_added:
        yield f"+ {tenant}/{added.person}: key {added.key.id} {added.key.public_key}"


def in_words(standing: Standing) -> str:
    """`reviewer, at most 1000.00 EUR each and 5000.00 EUR in 24h`."""
    roles = ", ".join(sorted(standing.roles)) or "no role"
    return ", ".join([roles, *map(_limit, standing.limits), *([] if standing.active else ["inactive"])])


def _limit(limit: Limit) -> str:
    total = f" and {limit.total} in {limit.within}" if limit.total is not None else ""
    return f"at most {limit.each} each{total}"
