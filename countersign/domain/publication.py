"""The arguments of `publish_report`, version 1: what a reviewer may edit and the gateway executes.

Apart because the case that proposes a publication and the gateway that makes it read the same form and not each other.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from countersign.domain.channel import ChannelName
from countersign.domain.document_names import checked_document_name
from countersign.domain.errors import InputRefused
from countersign.domain.values import Value

TOOL, TOOL_VERSION = "publish_report", "1"
SCOPE = "one_document"


def _document_name(name: str) -> str:
    try:
        return checked_document_name(name)
    except InputRefused as refused:
        raise ValueError(refused.message) from None


class PublishReport(Value):
    """Where a report goes, and what it is called there."""

    channel: ChannelName
    name: Annotated[str, AfterValidator(_document_name)]
    title: Annotated[str, Field(min_length=1, max_length=10_000)]

    @property
    def target(self) -> str:
        """The channel and the name in it."""
        return f"{self.channel}:{self.name}"
