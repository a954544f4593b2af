"""What each case's order comes to: the request that is signed, read and checked as far as the requester's side can.

Apart from `start`, which is the same for all of them; a new case is one more function here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from countersign.cli.session import Session
from countersign.cli.starting.following import with_message
from countersign.cli.starting.registering import Intent, derived_id
from countersign.cli.starting.request_file import Order, RefundOrder, read_schema, refund_request_of, request_of
from countersign.domain.canonical import canonical_bytes
from countersign.domain.channel import channel_taking
from countersign.domain.errors import DataRefused
from countersign.domain.refund import REFUND
from countersign.domain.report import DatasetSchema, ReportRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def report_intent(session: Session, order: Order) -> Intent:
    """A report on exactly the data as it lies there now; raises as `start.start_operation` says."""
    from countersign.cases.report.case import REPORT, document_name

    document = canonical_bytes(_report_request(session, order).model_dump(mode="json", by_alias=True))
    operation = order.operation or derived_id(REPORT, document)
    document_name(operation)  # an id that no report can be published under is refused before anyone is asked
    return Intent(order.tenant, order.requester, REPORT, operation, document)


def refund_intent(session: Session, order: RefundOrder) -> Intent:
    """A refund, and behind it the customer's message where one is wanted.

    Raises:
        ConfigurationRefused: the tenant has no such channel.
        InputRefused: the channel takes no refunds, or what `with_message` refuses.
    """
    from countersign.bootstrap import load_channels

    request = refund_request_of(order)
    channel_taking("refunds", request.channel, order.tenant, load_channels(session.settings))
    document = canonical_bytes(request.model_dump(mode="json"))
    operation = order.operation or derived_id(REFUND, document)
    intent = Intent(order.tenant, order.requester, REFUND, operation, document)
    return with_message(session, intent, request.message_channel) if request.message_channel else intent


def _report_request(session: Session, order: Order) -> ReportRequest:
    """The request with its data read strictly, stored, and pinned by its hash."""
    from countersign.bootstrap import evidence, load_channels
    from countersign.cases.report.case import REPORT

    request = request_of(order, read_schema(Path(order.schema_)) if order.schema_ else DatasetSchema())
    channel_taking("documents", request.channel, order.tenant, load_channels(session.settings))
    data, policy = evidence(session.settings), session.ledger.directory.policies(order.tenant).get(REPORT)
    dataset = request.dataset.model_copy(update={"sha256": data.put(order.tenant, Path(order.data))})
    try:
        data.open(order.tenant, dataset, policy.sensitive_columns if policy is not None else ()).close()
    except DataRefused as refused:
        raise DataRefused(f"{order.data}: {refused.message}") from None
    return request.model_copy(update={"dataset": dataset})


INTENTS: Mapping[str, Callable[[Session, Any], Intent]] = {"report": report_intent, "refund": refund_intent}
"""What is made of an order, by case; each takes its own form of `request_file.FORMS`."""
