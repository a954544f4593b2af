"""How an agent's work can fail, and which failures are worth another attempt.

It stands apart because Temporal does the retrying: a provider's many errors become two kinds here, `ModelUnavailable`
(try again, after the time that the provider asked for) and `ModelRefused` (another attempt would end the same).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from countersign.domain.errors import Conflict, CountersignError, Unavailable

RETRYABLE_STATUS = frozenset({408, 409, 425, 429})
MAX_RETRY_AFTER = 600.0
"""Seconds; a provider that asks for more is asked again after this long."""


class ModelUnavailable(Unavailable):
    """The model did not answer, or not readably; `retry_after` is the wait in seconds where the provider named one."""


class ModelRefused(CountersignError):
    """The model will not do this (key, request, budget, refusal); the same attempt again would end the same."""

    code = "MODEL_REFUSED"


class DraftingFailed(CountersignError):
    """The agent used up its model calls without a draft of the required form."""

    code = "DRAFTING_FAILED"


class AttemptSuperseded(Conflict):
    """A newer attempt has taken the checkpoint over; nothing of this one is written any more."""

    code = "ATTEMPT_SUPERSEDED"


def model_failure(model: str, error: Exception) -> CountersignError:
    """What a model call's exception means, as one line that holds nothing of the prompt.

    Every provider error of the OpenAI client carries `status_code` and `response` where an answer came; a missing
    status is a broken or timed-out connection, or an answer that could not be read.
    """
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return ModelUnavailable(f"model {model} gave no readable answer ({type(error).__name__}); it is tried again")
    reason = _reason(error)
    if status == 429 and reason == "insufficient_quota":
        return ModelRefused(f"model {model}: the provider's quota is used up; raise it or take another key")
    if status in RETRYABLE_STATUS or status >= 500:
        return ModelUnavailable(
            f"model {model} answered HTTP {status}{_suffix(reason)}; tried again", retry_after=_wait(error)
        )
    if status in (401, 403):
        return ModelRefused(f"model {model} answered HTTP {status}{_suffix(reason)}; check the key and its rights")
    return ModelRefused(f"model {model} answered HTTP {status}{_suffix(reason)}; check the model's name and limits")


def cause_of(error: Exception) -> str:
    """What was met, in a word or two: `HTTP 503 (overloaded)`, or the kind of error where no answer came."""
    met = error.__cause__ if isinstance(error, CountersignError) and isinstance(error.__cause__, Exception) else error
    status = getattr(met, "status_code", None)
    return f"HTTP {status}{_suffix(_reason(met))}" if isinstance(status, int) else type(met).__name__


def _suffix(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _reason(error: Exception) -> str:
    body = getattr(error, "body", None)
    code = body.get("code") or body.get("type") if isinstance(body, Mapping) else None
    return json.dumps(code)[1:61].strip('"') if isinstance(code, str) else ""


def _wait(error: Exception) -> float | None:
    """Seconds, from the header's number or date; nothing where there is none or it says neither."""
    said = str(getattr(getattr(error, "response", None), "headers", {}).get("retry-after", ""))
    try:
        seconds = float(said) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", said) else _until(said)
    except ValueError:
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _until(date: str) -> float:
    """Seconds from now to an HTTP date; ValueError where it is none."""
    at = parsedate_to_datetime(date)
    return (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
