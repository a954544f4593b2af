"""What the activities need from outside, as protocols; `bootstrap` says which part fulfils each.

Every ledger method is one transaction that holds the state change and its audit record together (G45), is scoped to a
tenant, and gives the same answer when it is repeated: an activity may run twice.
"""

from __future__ import annotations

from countersign.ports.agent import Drafter, Grader, ModelCalls, ProgressLog, Questions, Retainer, Waiting, Watching
from countersign.ports.control import (
    Amendment,
    Controls,
    Delivery,
    Escalations,
    Freezes,
    Outbox,
    ReceivedCommand,
    Standing,
)
from countersign.ports.ledger import Ledger
from countersign.ports.material import Material, RefundMaterial, ReportMaterial
from countersign.ports.outside import Cell, Clock, DatasetReader, Effects, Evidence
from countersign.ports.people import Adopted, Approvals, Directory, Received
from countersign.ports.records import (
    AuditLog,
    Documents,
    Drafts,
    Executions,
    Findings,
    Operations,
    SignedSettlement,
    Written,
)

__all__ = [
    "Adopted",
    "Amendment",
    "Approvals",
    "AuditLog",
    "Cell",
    "Clock",
    "Controls",
    "DatasetReader",
    "Delivery",
    "Directory",
    "Documents",
    "Drafter",
    "Drafts",
    "Effects",
    "Escalations",
    "Evidence",
    "Executions",
    "Findings",
    "Freezes",
    "Grader",
    "Ledger",
    "Material",
    "ModelCalls",
    "Operations",
    "Outbox",
    "ProgressLog",
    "Questions",
    "Received",
    "ReceivedCommand",
    "RefundMaterial",
    "ReportMaterial",
    "Retainer",
    "SignedSettlement",
    "Standing",
    "Waiting",
    "Watching",
    "Written",
]
