"""Addresses as they are configured: where notices go, whose, and which. Pure.

A notice is for roles and for persons. A person whom a mailbox of the tenant names is told there; one whom none names is
told wherever their roles are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from countersign.domain.directory import Role
from countersign.domain.escalation import Severity
from countersign.domain.identity import PersonId, TenantId
from countersign.domain.loopback import is_loopback
from countersign.domain.notice import Notice
from countersign.domain.values import Value

AddressName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
"""Name of an environment variable of the gateway process."""
MailAddress = Annotated[str, Field(pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}$")]

_URGENCY = tuple(Severity)


class _Address(Value):
    """What every address says."""

    tenants: Annotated[tuple[TenantId, ...], Field(strict=False, min_length=1)]
    """Whose notices it is for. Never left out: whoever can found a tenant would be heard at every address (G09)."""
    min_severity: Annotated[Severity, Field(strict=False)] = Severity.LOW
    """Nothing below it is sent."""

    def takes(self, notice: Notice) -> bool:
        """Whether the notice is of its tenants, and urgent enough."""
        urgent = _URGENCY.index(notice.severity) >= _URGENCY.index(self.min_severity)
        return notice.tenant in self.tenants and urgent


class Webhook(_Address):
    """An HTTP address that takes Slack-compatible JSON, with a signature."""

    kind: Literal["webhook"]
    url: Annotated[str, Field(max_length=500)] = ""
    url_env: Variable | Literal[""] = ""
    """In place of `url` where the address is a secret itself, as chat services have it."""
    secret_env: Variable
    """Holds the secret of the signature."""
    roles: Annotated[tuple[Role, ...], Field(strict=False, min_length=1)]
    """Who listens there."""

    @model_validator(mode="after")
    def _one_url(self) -> Webhook:
        if bool(self.url) == bool(self.url_env):
            raise ValueError("give either 'url' or 'url_env'")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it is read from."""
        return tuple(name for name in (self.url_env, self.secret_env) if name)

    def listens(self, audience: Audience) -> bool:
        """Whether anyone of the audience listens there."""
        return not audience.roles.isdisjoint(self.roles)


class Mailbox(_Address):
    """A mail server, and whom it is given mail for."""

    kind: Literal["smtp"]
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]{1,253}$")]
    port: Annotated[int, Field(ge=1, le=65535)]
    tls: Literal["starttls", "implicit", "none"]
    sender: Annotated[MailAddress, Field(alias="from")]
    to: dict[Role, Annotated[tuple[MailAddress, ...], Field(strict=False, min_length=1)]] = Field(default_factory=dict)
    """Who is told for a role."""
    persons: dict[PersonId, MailAddress] = Field(default_factory=dict)
    """Persons' own addresses."""
    user_env: Variable | Literal[""] = ""
    password_env: Variable | Literal[""] = ""

    @model_validator(mode="after")
    def _usable(self) -> Mailbox:
        if not self.to and not self.persons:
            raise ValueError("give 'to' or 'persons', or nobody would ever be told")
        if self.tls == "none" and not is_loopback(self.host):
            raise ValueError("tls: none is for this machine itself (127.0.0.0/8, ::1 or localhost); use starttls")
        if bool(self.user_env) != bool(self.password_env):
            raise ValueError("give 'user_env' and 'password_env' together, or neither")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it is read from."""
        return tuple(name for name in (self.user_env, self.password_env) if name)

    def recipients(self, audience: Audience) -> tuple[str, ...]:
        """Whom of the audience it reaches, each once."""
        for_roles = [one for role, several in self.to.items() if role in audience.roles for one in several]
        named = [one for person, one in self.persons.items() if person in audience.persons]
        return tuple(dict.fromkeys(for_roles + named))

    def listens(self, audience: Audience) -> bool:
        """Whether it reaches anyone of the audience."""
        return bool(self.recipients(audience))


Address = Annotated[Webhook | Mailbox, Field(discriminator="kind")]


class Notifications(Value):
    """The file `notifications.yaml`."""

    addresses: dict[AddressName, Address]
    """None at all is allowed: then nothing is sent."""


class Audience(Value):
    """Who is told."""

    roles: frozenset[Role]
    persons: frozenset[PersonId]


def audience_of(
    notice: Notice, addresses: Iterable[Webhook | Mailbox], roles_of: Callable[[PersonId], Iterable[Role]]
) -> Audience:
    """Whom a notice is for: a person whom no mailbox of the tenant names stands for their roles."""
    named: set[PersonId] = set()
    for address in addresses:
        if isinstance(address, Mailbox) and notice.tenant in address.tenants:
            named |= address.persons.keys()
    roles = set(notice.roles)
    for person in notice.persons:
        if person not in named:
            roles.update(roles_of(person))
    return Audience(roles=frozenset(roles), persons=frozenset(notice.persons))


def chosen(notice: Notice, addresses: Mapping[str, Webhook | Mailbox], audience: Audience) -> tuple[str, ...]:
    """The names of the addresses where the notice is told, in their order."""
    return tuple(
        name for name, address in sorted(addresses.items()) if address.takes(notice) and address.listens(audience)
    )
