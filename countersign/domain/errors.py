"""Every refusal a person can meet, as one line: what happened, where, what is allowed, what to do next.

The first argument of each error is that whole sentence; `code` is the stable reason that records and tests use.
"""

from __future__ import annotations


class CountersignError(Exception):
    """A refusal that is shown to a person as its message, never as a traceback."""

    code = "ERROR"

    @property
    def message(self) -> str:
        """The one line for people."""
        return str(self.args[0]) if self.args else self.code


class InputRefused(CountersignError):
    """Something that came in (JSON, id, request, file) does not have the allowed form."""

    code = "INPUT_REFUSED"


class DataRefused(CountersignError):
    """A dataset cannot be read in its declared form; the message names row, column and value."""

    code = "DATA_REFUSED"


class EvidenceContradictsItself(DataRefused):
    """Two rows of a dataset stand for the same thing by the columns that are declared unique."""

    code = "EVIDENCE_CONTRADICTS_ITSELF"


class QueryRefused(CountersignError):
    """A query on the evidence is not one bounded read-only SELECT, or yielded something it may not."""

    code = "QUERY_REFUSED"


class ConfigurationRefused(CountersignError):
    """A policy, rubric, directory or settings value is missing, misspelt or empty; the message names the field."""

    code = "CONFIGURATION_REFUSED"


class Conflict(CountersignError):
    """The same id stands for something else already."""

    code = "CONFLICT"


class BudgetExceeded(CountersignError):
    """The run, or its tenant, may not spend more on models; the message names the limit and who may raise it."""

    code = "BUDGET_EXCEEDED"


class TooManyPending(CountersignError):
    """So much of the tenant waits for people already that nothing more is brought before them (G41)."""

    code = "TOO_MANY_PENDING"


class NotFound(CountersignError):
    """Nothing of that name is visible to the caller; another tenant's name gives the same answer (G09)."""

    code = "NOT_FOUND"


class StatementRefused(CountersignError):
    """A signed statement is not acceptable; `reason` says which check failed (G18)."""

    code = "STATEMENT_REFUSED"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NotAuthorised(CountersignError):
    """The gateway found no valid grant for exactly this action, so nothing was sent."""

    code = "NOT_AUTHORISED"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Drifted(NotAuthorised):
    """Something that a grant rests on has changed since: the grant is void, and people can be asked anew."""

    code = "DRIFTED"

    def __init__(self, reason: str, message: str, *, expected: str, found: str) -> None:
        super().__init__(reason, message)
        self.expected = expected
        self.found = found


class Frozen(CountersignError):
    """Effects are held at the gateway; nothing was sent, and it is tried again until the freeze is lifted."""

    code = "FROZEN"


class NotYet(CountersignError):
    """What was sent before for the same operation may still take effect; nothing was sent, and it is tried again."""

    code = "NOT_YET"


class ControlChanged(Conflict):
    """Control has changed hands since; whatever was begun before that does nothing any more (G29)."""

    code = "CONTROL_CHANGED"


class EvidenceGone(CountersignError):
    """The data that an action rests on is no longer there as it was pinned, so nothing can be asked about it."""

    code = "EVIDENCE_GONE"


class DeniedByPolicy(CountersignError):
    """No rule of the policy allows the action, so nobody is asked (G01)."""

    code = "DENIED_BY_POLICY"


class Unavailable(CountersignError):
    """A part that Countersign needs (server, worker, database, disk, model) does not answer or is full."""

    code = "UNAVAILABLE"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds to wait before asking again, where the part said so."""
