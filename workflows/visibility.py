"""What operators see of a run in a list: search attributes, with nothing sensitive in them (G46)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, SearchAttributeUpdate, TypedSearchAttributes

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import RunOrder
    from countersign.domain.state import State

from workflows import names


def first_attributes(tenant: str, case: str) -> TypedSearchAttributes:
    """What a run is started with."""
    values = {names.TENANT: tenant, names.CASE: case, names.STATE: State.CREATED.value}
    return TypedSearchAttributes(
        [SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in values.items()]
    )


def search_attributes(
    run: RunOrder, state: State, roles: tuple[str, ...], until: datetime | None
) -> list[SearchAttributeUpdate[Any]]:
    """All of them as they are in `state`; `roles` and `until`: who moves next and for how long, where people do."""
    role = SearchAttributeKey.for_keyword_list(names.REQUIRED_ROLE)
    deadline = SearchAttributeKey.for_datetime(names.DEADLINE)
    return [
        SearchAttributeKey.for_keyword(names.TENANT).value_set(run.tenant),
        SearchAttributeKey.for_keyword(names.CASE).value_set(run.case),
        SearchAttributeKey.for_keyword(names.STATE).value_set(state.value),
        role.value_set(roles) if roles else role.value_unset(),
        deadline.value_set(until) if until is not None else deadline.value_unset(),
    ]
