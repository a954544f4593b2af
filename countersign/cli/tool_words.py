"""What each tool of the gateway does and did, in the words of people.

Apart from the texts in which they stand, since those who are asked and those who look later are to read the same.
"""

from __future__ import annotations

BUSINESS_NAMES = {
    "publish_report": "publish a report",
    "refund_payment": "refund a payment to the account that it came from",
    "reverse_effect": "take back what another operation did",
    "send_message": "tell a customer of what another operation did",
    "change_directory": "change who may do what: persons, roles, limits, keys",
    "change_policy": "put a policy in force",
    "unfreeze_effects": "lift a freeze, so that what it held can happen",
}
"""What a tool does, in the words of those who are asked."""
EFFECT_NAMES = {
    "publish_report": "published",
    "refund_payment": "refunded as",
    "reverse_effect": "taken back",
    "send_message": "told as",
    "change_directory": "in force",
    "change_policy": "in force",
    "unfreeze_effects": "in force",
}
"""What a tool did, before the name that the outside gave it, or before the change that it made."""
