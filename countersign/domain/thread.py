"""The id of an agent's stored thread: which draft version of which run it belongs to. Pure."""

from __future__ import annotations

from countersign.domain.identity import workflow_id


def thread_id(tenant: str, operation: str, line: str, control_version: int, draft_version: int) -> str:
    """Where the agent of a run's line keeps what it did for one draft version.

    With the control version: whoever releases a run has its agent begin the version anew.
    """
    return f"{workflow_id(tenant, operation)}:{line}:{control_version}:v{draft_version}"


def operation_of_thread(thread: str) -> tuple[str, str]:
    """The inverse as far as a retention needs it: `(tenant, operation)`, whatever follows them."""
    tenant, _, rest = thread.partition(":")
    return tenant, rest.partition(":")[0]
