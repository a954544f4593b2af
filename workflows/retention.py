"""A retention, to be started by a Temporal schedule: one step, which deletes what agents kept of ended operations.

Apart from the runs, since it belongs to none of them.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from activities.interfaces import Retaining
from countersign.domain.retention import Forgotten, RetentionOrder
from countersign.domain.values import first_problem
from workflows.options import RETENTION_STEP


@workflow.defn
class Retention:
    """Input: `{"keep": "30d"}`, with `"tenant": "..."` for one alone."""

    @workflow.run
    async def run(self, order: Any = None) -> Forgotten:
        """Delete, and say how much; another input fails at once, where it would else be tried for ever."""
        try:
            asked = RetentionOrder.model_validate(order)
        except ValidationError as error:
            raise ApplicationError(
                f'the input is not as it has to be ({first_problem(error)}); give {{"keep": "30d"}}',
                type="INPUT_REFUSED",
                non_retryable=True,
            ) from None
        return await workflow.execute_activity_method(Retaining.forget_threads, asked, **RETENTION_STEP)
