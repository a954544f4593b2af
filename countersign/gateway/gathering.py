"""Gathering: what an operation rests on is read outside, with the gateway's credential, and pinned in the ledger.

Apart from the flow that acts, since it changes nothing outside. What is read is what a requester has signed for, and
not what a run says: whoever could name another order would read any customer's payments.
"""

from __future__ import annotations

from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import NotAuthorised, NotFound, StatementRefused
from countersign.domain.operation import Operation
from countersign.domain.values import Sha256
from countersign.gateway.tool import Reach, read_request
from countersign.gateway.tools import READERS
from countersign.ports import Ledger
from countersign.signing.statements import verify_request


class Gathering:
    """Reads the facts of operations; fulfils `gather` of `ports.Effects`."""

    def __init__(self, ledger: Ledger, reach: Reach, installation: str) -> None:
        """`installation` is the audience that requests must name."""
        self._ledger = ledger
        self._reach = reach
        self._installation = installation

    def gather(self, tenant: str, operation: str) -> Sha256:
        """Read what the operation's request names, and keep it as the operation's facts.

        Raises:
            NotFound: there is no such operation, nothing of that name outside, or the operation's case rests on none.
            NotAuthorised: nobody has validly signed for it, or the tenant has no such channel.
            Unavailable: it cannot be read now; nothing was recorded.
        """
        asked = self._ledger.operations.get(tenant, operation)
        reader = READERS.get(asked.case)
        if reader is None:
            raise NotFound(f"operation {operation} is of case {asked.case}, which rests on no facts to gather")
        self._check_signed(asked)
        facts = reader.read(tenant, read_request(reader.form, asked, self._ledger), self._reach)
        document = self._ledger.documents.put(tenant, canonical_bytes(facts.model_dump(mode="json")))
        self._ledger.operations.gathered(tenant, operation, document, self._reach.clock())
        return document

    def _check_signed(self, operation: Operation) -> None:
        persons = self._ledger.directory.persons(operation.tenant)
        try:
            signed, _ = verify_request(
                operation.statement, persons, installation=self._installation, now=self._reach.clock()
            )
        except StatementRefused as doubt:
            raise NotAuthorised("request", f"the request is not validly signed: {doubt.message}") from None
        named = (signed.tenant, signed.operation, signed.request_hash, signed.person)
        if named != (operation.tenant, operation.operation, operation.request_hash, operation.requester):
            raise NotAuthorised("request", "the request was not signed for this operation by its requester")
