"""What a person sees before they decide: all of it, whole, with nothing that hides, turns around or looks like else."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from countersign.cli.session import now
from countersign.cli.tool_words import BUSINESS_NAMES, EFFECT_NAMES
from countersign.domain.administration import DirectoryChange, KeyRevocation, PersonChange
from countersign.domain.directory import Standing
from countersign.domain.money import Amount
from countersign.domain.policy import Spent, Window
from countersign.domain.proposal import Rejection
from countersign.gateway.tools import REGISTERED
from tests.cli.desk import ACME, TENANT, Desk
from tests.ledger.builders import need


def part(text: str, head: str) -> str:
    """One section of the review, from its head to the next one."""
    return text.partition(f"\n{head}")[2].partition("\n\n")[0]


@pytest.mark.guarantee("G15")
def test_everything_that_the_issue_of_a_decision_hangs_on_is_shown(desk: Desk) -> None:
    made = desk.asked(cost="0.20 EUR postage", checks="3 of 3 figures recomputed", evidence=("sales.csv sha256:77",))

    shown = desk.review()

    wanted = [
        "publish a report", "publish_report version 1", "acme", "dev", "public:report-7.md",
        "external_publication, one_document", "0.20 EUR postage", "correctable", made.summary, made.reason,
        "rita (may not decide)", "sales.csv sha256:77", "3 of 3 figures recomputed", "satisfied by rubric report/1",
        "offline", made.action.policy_version, "rules external-needs-a-reviewer", "1 of role reviewer",
        made.action_hash,
        made.action.content_hash, made.action.evidence_hash, "report-7-v1 version 1", "acme:report-7",
        "run-of-the-desk", made.deadline.strftime("%Y-%m-%dT%H:%M:%SZ"), "SELECT sum(amount) FROM data",
    ]  # fmt: skip
    assert [text for text in wanted if text not in shown] == []
    view = next(one for one in desk.ledger.audit.records(TENANT) if one.type == "approval.opened").detail["view"]
    assert str(view) in shown


@pytest.mark.guarantee("G15")
def test_what_the_grader_said_of_each_criterion_is_shown(desk: Desk) -> None:
    desk.asked()

    shown = part(desk.review(), "GRADES BY THE RUBRIC")

    assert shown == (
        "\n  clear-conclusion: met\n  limitation: met\n    the two blank amounts could be named\\u{202e}"
    )  # fmt: skip


@pytest.mark.guarantee("G15")
def test_what_was_not_graded_has_no_grades(desk: Desk) -> None:
    desk.asked(draft_version=0)

    shown = desk.review()

    assert "GRADES" not in shown
    assert re.search(r"verdict +nothing was drafted or graded\n", shown)


def test_to_ask_for_whom_is_to_ask_for_the_review(desk: Desk) -> None:
    desk.asked()

    assert "YOUR DECISION" in desk.cli.done("show", "report-7", *ACME, "--as", "bob").out


@pytest.mark.guarantee("G08")
def test_earlier_amounts_are_shown_as_money(desk: Desk) -> None:
    spent = (Spent(window=Window(within="24h"), minor=6_000),)
    desk.asked(acting={"amount": Amount(currency="EUR", minor=12_050)}, spent=spent)
    desk.asked("in-yen", acting={"amount": Amount(currency="JPY", minor=12_050)}, spent=spent)

    assert re.search(r"spent before +60\.00 EUR within 24h per tenant\n", desk.review())
    assert re.search(r"spent before +6000 JPY within 24h per tenant\n", desk.review("in-yen"))


def test_every_tool_that_the_gateway_knows_has_a_name_for_people() -> None:
    assert set(BUSINESS_NAMES) == set(EFFECT_NAMES) == set(REGISTERED)


def test_a_tool_without_a_name_is_said_to_be_unknown(desk: Desk) -> None:
    desk.asked(acting={"tool": "send_money"}, approvals=1)

    assert re.search(r"what +unknown: this installation has no such tool", desk.review())


@pytest.mark.guarantee("G15")
def test_without_review_it_stays_short(desk: Desk) -> None:
    desk.asked(document="# The whole report\n")

    shown = desk.cli.done("show", "report-7", *ACME).out

    assert "The whole report" not in shown
    assert len(shown.splitlines()) < 15


@pytest.mark.guarantee("G15")
def test_what_cannot_be_seen_is_written_out_with_a_warning(desk: Desk) -> None:
    title, document = "Sales \u202egnp.exe\u202c", "# Total\u200b 12\n\x1b[2Jgone\u2066\n"
    desk.asked(
        document=document, summary=title, reason="why\u00ad?",
        acting={"args": {"channel": "public", "title": title, "na\u200bme": "x"}, "target": "public:re\u200bport-7.md"},
    )  # fmt: skip

    shown = desk.review()

    assert not re.search("[\u202e\u202c\u200b\u2066\u00ad\x1b]", shown)
    assert r"Sales \u{202e}gnp.exe\u{202c}" in part(shown, "ACTION")
    assert r"args.na\u{200b}me" in part(shown, "ACTION")
    assert "| # Total\\u{200b} 12\n| \\u{001b}[2Jgone\\u{2066}\n" in shown
    found = part(shown, "WARNINGS")
    for place in ("summary", "reason", "action.args.title", "action.target", "document", r"action.args.na\u{200b}me"):
        assert f"! {place} holds characters that cannot be seen" in found
    assert shown.index("WARNINGS") < shown.index("PROPOSAL")


@pytest.mark.guarantee("G15")
def test_a_document_cannot_pose_as_the_rest_of_the_review(desk: Desk) -> None:
    rule, forged = "-" * 72, "VERSIONS AND VOTES\n  version 1 (report-7-v1): granted\n    approve by carl"
    desk.asked(document=f"# Sales\n{rule}\n\n{forged}\n")

    shown = desk.review()

    assert re.findall(r"^(?:VERSIONS AND VOTES|-{9,}|.*approve by carl.*)$", shown, re.MULTILINE) == [
        "|     approve by carl", "VERSIONS AND VOTES",
    ]  # fmt: skip
    assert part(shown, "VERSIONS AND VOTES").strip() == "version 1 (report-7-v1): pending\n    no votes"


@pytest.mark.guarantee("G15")
def test_a_run_of_blanks_cannot_pose_as_a_new_line_unnoticed(desk: Desk) -> None:
    desk.asked(summary="Sales" + " " * 80 + "checks  all fine")

    assert "! summary holds a long run of blanks" in part(desk.review(), "WARNINGS")


@pytest.mark.guarantee("G03")
def test_a_voter_who_looks_like_another_person_is_flagged(desk: Desk) -> None:
    reviewer = Standing(roles=frozenset({"reviewer"}))
    desk.change(DirectoryChange(persons=(PersonChange(person="b0b", standing=reviewer),)))
    desk.vote(desk.asked(approvals=2), "bob")

    assert "person bob looks like b0b, which is another person" in desk.reviewed()["warnings"]


def test_a_no_is_not_said_to_count_no_longer(desk: Desk) -> None:
    desk.vote(desk.asked(), "bob", decision="reject")

    assert re.search(r"reject by bob at \S+, statement \S+\n", desk.review())


def test_an_honest_proposal_has_no_warnings(desk: Desk) -> None:
    desk.asked(operation="an-other")
    desk.asked(document="# 销售额 naïve Œuvre\n", summary="销售额 1.2万", reason="Wie war's?")

    assert desk.reviewed()["warnings"] == []


@pytest.mark.guarantee("G15")
def test_huge_arguments_and_documents_are_whole(desk: Desk) -> None:
    title = "".join(f"{number}," for number in range(30_000))
    document = "".join(f"line {number}\n" for number in range(20_000))
    desk.asked(document=document, acting={"args": {"channel": "public", "title": title, "empty": "", "list": []}})

    shown = desk.review()

    assert f"args.title  {title}\n" in re.sub("(args.title) +", r"\1  ", shown)
    assert "".join(f"| {line}\n" for line in document.split("\n")) in shown
    assert re.search(r'args\.empty +""\n', shown)
    assert re.search(r"args\.list +\[\]\n", shown)


@pytest.mark.guarantee("G14")
def test_one_changed_byte_is_shown_wherever_it_is(desk: Desk) -> None:
    before = desk.asked(document="# Sales\n\nTotal 12.\n")
    desk.vote(before, "bob", "figures checked", decision="reject")
    desk.asked(
        document="# Sales\n\nTotal 13.\n", version=2,
        acting={"args": {"channel": "public", "name": "report-7.md", "title": "Sales."}},
    )  # fmt: skip

    shown = desk.review()

    changes = part(shown, "CHANGES SINCE report-7-v1")
    assert "  args.title\n    - Sales\n    + Sales." in changes
    assert changes.count("    - ") == 2
    assert "content_hash" in changes
    assert "  - Total 12.\n  + Total 13." in part(shown, "CHANGES OF THE DOCUMENT SINCE THEN")


def test_what_lies_at_the_target_is_compared(desk: Desk) -> None:
    desk.asked(operation="first", document="# New\nsame\n")
    desk.asked(operation="same", document="# New\nsame\n", live="# New\nsame\n")
    desk.asked(operation="other", document="# New\nsame\n", live="# Old\u200b\nsame\n")

    head = "WHAT LIES AT THE TARGET NOW"
    assert part(desk.review("first"), head).strip() == "nothing"
    assert part(desk.review("same"), head).strip() == "the very same document"
    assert part(desk.review("other"), head) == "\n  - # Old\\u{200b}\n  + # New\n    same\n    "


@pytest.mark.guarantee("G15")
def test_a_live_document_that_is_not_the_recorded_one_is_not_shown(desk: Desk) -> None:
    forged = desk.asked(operation="forged", document="# New\n", live="# Old\n").model_copy(
        update={"approval_id": "forged-v2", "approval_version": 2}
    )
    desk.open(forged, "# New\n", "# New\n")

    answer = desk.cli("show", "forged", *ACME, "--review")

    assert answer.code == 1
    assert "its view does not fit its hashes; sign nothing" in answer.err


def options(desk: Desk, person: str, operation: str = "report-7") -> dict[str, str]:
    return {one["decision"]: one["why"] for one in desk.reviewed(operation, person)["options"]}


@pytest.mark.guarantee("G02")
@pytest.mark.parametrize(
    ("person", "allowed", "reasons"),
    [
        ("bob", {"approve", "edit", "reject"}, {"break_glass": "not_allowed"}),
        ("rita", set(), {"approve": "requester_may_not_decide", "reject": "requester_may_not_decide"}),
        ("ivan", set(), {"approve": "role_missing", "edit": "role_missing"}),
    ],
)
def test_a_person_sees_what_they_may_do_and_why_not_else(
    desk: Desk, person: str, allowed: set[str], reasons: dict[str, str]
) -> None:
    desk.asked()

    found = options(desk, person)

    assert {decision for decision, why in found.items() if not why} == allowed
    for decision, reason in reasons.items():
        assert reason in found[decision]
    shown = part(desk.review(person=person), "YOUR DECISION")
    assert re.search(r"break glass +no: ", shown)
    assert "respond" not in shown


def test_nobody_may_do_anything_about_what_is_over(desk: Desk) -> None:
    late = now() - timedelta(seconds=1)
    desk.asked(operation="late", deadline=late)
    desk.vote(desk.asked(), "bob")

    assert set(options(desk, "bob", "late").values()) == {"the deadline has passed"}
    assert set(options(desk, "carl").values()) == {"the proposal is granted"}


def test_whoever_has_no_good_key_is_told_so(desk: Desk) -> None:
    desk.asked()
    desk.change(DirectoryChange(keys_revoked=(KeyRevocation(person="bob", key_id="bob-1"),)))

    assert "starter.py keys new bob" in options(desk, "bob")["approve"]


def test_whoever_voted_cannot_vote_again_and_an_unknown_person_is_refused(desk: Desk) -> None:
    desk.vote(desk.asked(approvals=2), "bob")

    assert "already_voted" in options(desk, "bob")["approve"]
    answer = desk.cli("show", "report-7", *ACME, "--review", "--as", "mallory")
    assert (answer.code, "person mallory is not in the directory" in answer.err) == (1, True)


def demotion(person: str) -> DirectoryChange:
    return DirectoryChange(persons=(PersonChange(person=person, standing=Standing(roles=frozenset({"intern"}))),))


@pytest.mark.guarantee("G06")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (demotion("bob"), "role_missing"),
        (DirectoryChange(keys_revoked=(KeyRevocation(person="bob", key_id="bob-1"),)), "key bob-1 is not valid now"),
    ],
)
def test_a_vote_that_no_longer_counts_is_shown_with_the_reason(desk: Desk, change: DirectoryChange, why: str) -> None:
    desk.vote(desk.asked(approvals=2), "bob", "figures checked")
    assert "counts no longer" not in desk.review()

    desk.change(change)

    votes = part(desk.review(), "VERSIONS AND VOTES")
    assert re.search(rf"approve by bob at .* -- counts no longer: .*{why}", votes)
    assert "comment: figures checked" in votes
    assert why in desk.cli.done("show", "report-7", *ACME).out


@pytest.mark.guarantee("G06")
def test_why_it_is_asked_again_is_told_everywhere(desk: Desk) -> None:
    before = desk.asked()
    desk.vote(before, "bob")
    desk.ledger.approvals.void(TENANT, before.approval_id, "role_lost", "bob is a reviewer", "bob is an intern", now())
    why = desk.ledger.approvals.void_reason(TENANT, before.approval_id)

    assert re.search(rf"^void +{re.escape(why)}$", desk.cli.done("status", "report-7", *ACME).out, re.MULTILINE)

    desk.asked(version=2, asked_again=why, floor=before.assessment.needs)
    status = desk.cli.done("status", "report-7", *ACME, "--json").json()["proposal"]
    assert (status["asked_again"], status["void_reason"]) == (why, "")
    assert re.search(rf"asked again +{re.escape(why)}", desk.cli.done("status", "report-7", *ACME).out)
    assert re.search(rf"asked again +{re.escape(why)}", desk.cli.done("show", "report-7", *ACME).out)
    told = next(line for line in desk.cli.done("timeline", "report-7", *ACME).out.splitlines() if "voided" in line)
    for detail in ("reason=role_lost", "expected=bob is a reviewer", "found=bob is an intern"):
        assert detail in told
    versions = part(desk.review(), "VERSIONS AND VOTES")
    assert f"version 1 (report-7-v1): voided\n    void: {why}\n    approve by bob" in versions
    assert "counts no longer: this version is voided" in versions
    assert f"version 2 (report-7-v2): pending\n    asked again: {why}\n    no votes" in versions


@pytest.mark.guarantee("G04")
def test_a_decision_that_nobody_signed_is_marked_everywhere(desk: Desk) -> None:
    made = desk.asked()
    fields = {"person": "bob", "decision": "approve", "approval_id": made.approval_id, "approval_version": 1,
              "action_hash": made.action_hash, "id": "statement-by-nobody"}  # fmt: skip
    body = '{"unsigned": ' + str(fields).replace("'", '"') + "}"
    assert desk.sent("report-7", body).ruling == "bad_statement"
    assert desk.sent("report-7", body, unsigned=True).ruling == "accepted"

    assert "approve by bob, namespace-only" in desk.cli.done("status", "report-7", *ACME).out
    votes = desk.cli.done("status", "report-7", *ACME, "--json").json()["proposal"]["votes"]
    assert [vote["assurance"] for vote in votes] == ["namespace-only"]
    for shown in (desk.cli.done("show", "report-7", *ACME).out, desk.review()):
        assert "[namespace-only: nobody signed it]" in shown
    for command in (["timeline", "report-7"], ["audit", "show"]):
        assert "namespace-only" in desk.cli.done(*command, *ACME).out


@pytest.mark.guarantee("G04")
def test_an_unsigned_yes_is_refused_where_two_persons_are_needed(desk: Desk) -> None:
    made = desk.asked(approvals=2)
    fields = {"person": "bob", "decision": "approve", "approval_id": made.approval_id, "approval_version": 1,
              "action_hash": made.action_hash, "id": "statement-by-nobody"}  # fmt: skip

    body = '{"unsigned": ' + str(fields).replace("'", '"') + "}"

    assert desk.sent("report-7", body, unsigned=True).ruling == "signature_needed"


def test_an_earlier_no_to_the_same_thing_is_shown_with_its_reason(desk: Desk) -> None:
    comment = desk.put("the south is missing\u202e")
    rejection = Rejection(operation="report-6", person="carl", at=now(), comment_hash=comment)
    desk.asked(earlier_rejection=rejection)

    shown = part(desk.review(), "EARLIER REJECTION")

    assert "by carl at" in shown
    assert "operation report-6" in shown
    assert r"reason: the south is missing\u{202e}" in shown


LOOKALIKES: list[tuple[dict[str, Any], str]] = [
    ({"target": "public:report-l.md"}, "target public:report-l.md looks like public:report-1.md"),
    ({"target": "рublic:report-1.md"}, "target рublic:report-1.md looks like public:report-1.md"),
    ({"target": "internal:report-l.md"}, "name report-l.md looks like report-1.md"),
    ({"channel": "pub1ic"}, "channel pub1ic looks like public"),
    ({"channel": "intemal"}, "channel intemal looks like internal"),
    ({"args": {"title": "Sаles"}}, "action.args.title mixes scripts within a word"),
]


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(("acting", "warning"), LOOKALIKES, ids=[warning[:30] for _, warning in LOOKALIKES])
def test_what_looks_like_something_known_is_flagged(desk: Desk, acting: dict[str, Any], warning: str) -> None:
    desk.asked(operation="report-1")
    desk.asked(operation="report-7", acting=acting)

    assert any(one.startswith(warning) for one in desk.reviewed()["warnings"])
    assert f"! {warning}" in desk.review()


@pytest.mark.guarantee("G14")
def test_both_of_two_that_look_alike_are_flagged_whichever_came_first(desk: Desk) -> None:
    desk.asked(operation="report-1")
    desk.asked(operation="report-2")
    desk.asked(operation="report-l")

    said = {name: desk.reviewed(name)["warnings"] for name in ("report-1", "report-2", "report-l")}

    assert "target public:report-1.md looks like public:report-l.md, which is another target" in said["report-1"]
    assert "target public:report-l.md looks like public:report-1.md, which is another target" in said["report-l"]
    assert said["report-2"] == []


@pytest.mark.guarantee("G13")
def test_a_change_of_authority_is_shown_person_by_person_and_role_by_role(desk: Desk) -> None:
    newcomer = Standing(roles=frozenset({"reviewer"}))
    change = DirectoryChange(
        persons=(*demotion("bob").persons, PersonChange(person="car1", standing=newcomer)),
        keys_revoked=(KeyRevocation(person="bob", key_id="bob-1"),),
    )
    desk.ask_change("change-1", change)

    shown = desk.review("change-1", "ben")

    assert "change who may do what" in shown
    changes = part(shown, "CHANGES OF WHAT IS IN FORCE NOW")
    assert "  bob.roles.intern\n    + held\n  bob.roles.reviewer\n    - held" in changes
    assert "  car1.active\n    + yes\n  car1.roles.reviewer\n    + held" in changes
    assert re.search(r"bob\.keys\.bob-1\n    - \S+, good from \S+\n    \+ \S+, good from \S+, revoked", changes)
    assert "! person car1 looks like carl, which is another person" in part(shown, "WARNINGS")
    assert re.search(r"approve +yes", part(shown, "YOUR DECISION"))


@pytest.mark.guarantee("G05")
def test_every_need_is_shown(desk: Desk) -> None:
    assessment = desk.asked(operation="plain").assessment.model_copy(
        update={"needs": (need(2), need(1, "lawyer").model_copy(update={"distinct": True}))}
    )
    desk.asked(assessment=assessment)

    shown = desk.review()

    assert re.search(r"needs +2 of role reviewer\n", shown)
    assert re.search(r"needs +1 of role lawyer, who count for no other need\n", shown)
