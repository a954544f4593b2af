"""Which queries on sensitive columns people have allowed in an operation, by answers that were found to be signed.

Apart from the case, since the agent's step and the checks take the same from it: a query is allowed letter by letter,
and for this one operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from countersign.domain.question import Asked, answered_calls
from countersign.domain.report import QUERY_TOOL


def allowed_queries(asked: Iterable[Asked]) -> frozenset[str]:
    """The queries that people approved, and those that they put in the place of another one."""
    return frozenset(sql for each in asked for sql in _allowed(each))


def _allowed(asked: Asked) -> Iterator[str]:
    for call, answer in answered_calls(asked).values():
        if call.tool == QUERY_TOOL and answer.decision in ("approve", "edit"):
            args = call.args if answer.args is None else answer.args
            yield str(args["sql"])
