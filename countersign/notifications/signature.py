"""The signature of a webhook's body: HMAC-SHA256 over the time and the exact bytes, as chat and payment services do it.

The function for receivers is in docs/notifications.md, written with the standard library alone; a test runs it.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime

TIMESTAMP = "Countersign-Timestamp"
SIGNATURE = "Countersign-Signature"
DELIVERY = "Countersign-Delivery"


def signed_headers(secret: str, body: bytes, now: datetime) -> dict[str, str]:
    """`Countersign-Timestamp` and `Countersign-Signature: v1=HEX` over `v1:TIMESTAMP:BODY`."""
    timestamp = str(int(now.timestamp()))
    base = b"v1:" + timestamp.encode() + b":" + body
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return {TIMESTAMP: timestamp, SIGNATURE: f"v1={digest}"}
