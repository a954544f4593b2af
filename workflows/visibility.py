"""What operators see of a run in a list: search attributes, with nothing sensitive in them (G46)."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import RunOrder
    from countersign.domain.state import State

from workflows import names
from workflows.approval_window import ApprovalWindow


def search_attributes(run: RunOrder, state: State, waiting: ApprovalWindow | None) -> list[SearchAttributeUpdate[Any]]:
    """All of them as they are in `state`; `waiting` is the proposal that waits for people, where one does."""
    roles = SearchAttributeKey.for_keyword_list(names.REQUIRED_ROLE)
    deadline = SearchAttributeKey.for_datetime(names.DEADLINE)
    return [
        SearchAttributeKey.for_keyword(names.TENANT).value_set(run.tenant),
        SearchAttributeKey.for_keyword(names.CASE).value_set(run.case),
        SearchAttributeKey.for_keyword(names.STATE).value_set(state.value),
        roles.value_set(waiting.roles) if waiting else roles.value_unset(),
        deadline.value_set(waiting.deadline) if waiting else deadline.value_unset(),
    ]
