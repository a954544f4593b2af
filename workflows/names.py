"""Names that people and programs outside use: task queues, messages, search attributes."""

from __future__ import annotations

RUN_QUEUE = "countersign"
"""Workflows and every step but the effect."""
GATEWAY_QUEUE = "countersign-gateway"
"""The effect alone: only the process with outside credentials polls it."""

WORKFLOW_TYPE = "GovernedAction"

TENANT = "CountersignTenant"
CASE = "CountersignCase"
STATE = "CountersignState"
REQUIRED_ROLE = "CountersignRequiredRole"
DEADLINE = "CountersignDeadline"

SEARCH_ATTRIBUTES: dict[str, str] = {
    TENANT: "Keyword",
    CASE: "Keyword",
    STATE: "Keyword",
    REQUIRED_ROLE: "KeywordList",
    DEADLINE: "Datetime",
}
"""Name and type of each; they must be registered with the namespace, and nothing sensitive goes into them (G46)."""
