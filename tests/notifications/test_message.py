"""What a notice says to people: which command to use, and nothing that decides or that a receiver would act on."""

from __future__ import annotations

import re

import pytest

from countersign.domain.notice import NoticeKind
from tests.notifications.notices import HOSTILE, message, notice


def test_a_waiting_approval_names_operation_deadline_and_command() -> None:
    told = message()

    assert told.sentence == "Operation weekly-7 of tenant acme waits for a decision until 2026-11-30 10:00:00 UTC."
    assert told.command == "starter.py show weekly-7 --tenant acme --review"


@pytest.mark.parametrize("kind", NoticeKind)
@pytest.mark.parametrize("operation", ["weekly-7", ""])
def test_every_kind_has_a_sentence_and_a_command_that_decides_nothing(kind: NoticeKind, operation: str) -> None:
    about = notice(kind=kind, operation=operation, code="undecided_at_deadline", deadline=None)
    told = message(about)

    assert re.fullmatch(r"[A-Z][^{}\n]+\.", told.sentence)
    assert "tenant acme" in told.sentence.lower()
    assert re.match(r"starter\.py (?:show|timeline|outbox|inbox|freezes|audit show)\b", told.command)
    assert "  " not in told.command
    assert not re.search(r"https?:|approve|reject|decide |withdraw", told.sentence + told.command)


@pytest.mark.parametrize(
    ("kind", "code", "sentence", "command"),
    [
        (NoticeKind.FROZEN, "1:all",
         "Effects of tenant acme are frozen (freeze 1, every effect): they wait until two persons have lifted it.",
         "freezes --tenant acme"),
        (NoticeKind.UNFROZEN, "2:publish_report",
         "A freeze of tenant acme was lifted (freeze 2, tool publish_report): its effects go on unless another one"
         " holds them.", "freezes --tenant acme"),
        (NoticeKind.DELIVERY_FAILED, "12:chat",
         "A notice of tenant acme could not be delivered (notice 12 to chat).", "outbox --tenant acme"),
    ],
)  # fmt: skip
def test_what_concerns_a_whole_tenant_is_told_in_words_with_the_command_that_shows_it(
    kind: NoticeKind, code: str, sentence: str, command: str
) -> None:
    told = message(notice(kind=kind, operation="", code=code, deadline=None))

    assert (told.sentence, told.command) == (sentence, f"starter.py {command}")


def test_an_end_is_told_with_its_state_and_reason() -> None:
    failed = message(notice(kind=NoticeKind.RUN_ENDED, code="FAILED:checks_failed", deadline=None))
    done = message(notice(kind=NoticeKind.RUN_ENDED, code="SUCCEEDED", deadline=None))

    assert failed.sentence == "Operation weekly-7 of tenant acme ended (FAILED: checks_failed)."
    assert done.sentence == "Operation weekly-7 of tenant acme ended (SUCCEEDED)."


@pytest.mark.guarantee("G46")
def test_a_hostile_code_becomes_harmless_text() -> None:
    told = message(notice(kind=NoticeKind.RUN_ENDED, code=HOSTILE))

    assert not set(told.sentence) & set("<>&@*`|/\r\n")
    assert len(told.sentence) < 250
