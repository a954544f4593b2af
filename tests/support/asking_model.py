"""A stand-in for a model that asks a person while it drafts, for whoever wants to see a question without a model.

`python -m tests.support.asking_model [PORT]` serves it like an OpenAI-compatible service. It drafts one report on
`examples/`: it asks one question in words, delivers a draft with one figure, and its grade is a pass. The figure is
summed here from the file, so the checks, which recompute it, are as always.
"""

from __future__ import annotations

import csv
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.model_server import Turn, running_model_server
from tests.workflow.scripted_model import DESCRIBE, TOTAL, grade, is_grading

SALES = Path(__file__).resolve().parents[2] / "examples" / "sales.csv"
PORT = 8091
PROSE = "Espresso carried the half-year"
ASKS = Turn(calls=(("ask_user", {"question": "Who will read this: the board, or the sales team?"}),))


def total() -> str:
    """What the example's figures add up to."""
    with SALES.open(newline="", encoding="utf-8") as file:
        return str(sum(Decimal(row["amount"]) for row in csv.DictReader(file) if row["amount"]))


def draft(figure: str) -> Turn:
    """A report about the example with one figure."""
    claim = {"id": "c1", "query": TOTAL, "value": figure, "unit": "USD", "shown": f"{figure} USD"}
    content = {
        "title": "Sales", "body": f"{PROSE}: sales came to {{{{c1}}}} in all, summed over all records.",
        "claims": [claim], "source": "The file sales.csv.", "period": "As the data states it.", "unit": "USD",
        "limitations": ["Records without an amount are not counted."],
    }  # fmt: skip
    return Turn(calls=(("Draft", content),))


def answered(number: int, request: dict[str, Any]) -> Turn:
    """Describe, ask, deliver, by how far the conversation has come; every grading is a pass."""
    if is_grading(request):
        return grade()
    said = sum(message["role"] == "assistant" for message in request["messages"])
    return (DESCRIBE, ASKS, draft(total()))[min(said, 2)]


if __name__ == "__main__":
    with running_model_server(answered, int(sys.argv[1]) if sys.argv[1:] else PORT) as running:
        print(f"model server at {running.url}", flush=True)
        threading.Event().wait()
