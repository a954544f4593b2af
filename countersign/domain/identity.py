"""Names of tenants, operations and persons: what they may look like, and the run's workflow id made from them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from countersign.domain.errors import InputRefused

NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,63}"
_NAME = re.compile(NAME_PATTERN, re.ASCII)


def checked_name(value: str) -> str:
    """Return `value` if it is a legal tenant, operation or person id.

    Raises:
        InputRefused: for anything else; ids are compared byte for byte, so look-alikes never get in.
    """
    if not _NAME.fullmatch(value):
        raise InputRefused(f"id {value[:80]!r} is not allowed; use 1 to 64 of a-z 0-9 . _ - starting with a-z or 0-9")
    return value


def _pydantic_name(value: str) -> str:
    try:
        return checked_name(value)
    except InputRefused as refused:
        raise ValueError(refused.message) from None


Name = Annotated[str, AfterValidator(_pydantic_name)]
"""A tenant, operation or person id inside a model."""

TenantId = Name
OperationId = Name
PersonId = Name


def workflow_id(tenant_id: str, operation_id: str) -> str:
    """The run's workflow id; `:` is in neither part, so it splits in one way only."""
    return f"{checked_name(tenant_id)}:{checked_name(operation_id)}"


def operation_of(workflow_id: str) -> tuple[str, str]:
    """The inverse of `workflow_id`: `(tenant_id, operation_id)`."""
    tenant_id, separator, operation_id = workflow_id.partition(":")
    if not separator:
        raise InputRefused(f"workflow id {workflow_id[:140]!r} is not of the form tenant:operation")
    return checked_name(tenant_id), checked_name(operation_id)
