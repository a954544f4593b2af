"""The brief as text for a terminal, section by section; nothing of it is cut short.

Apart from the facts themselves: here it is only said how they look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from countersign.cli.deciding.said import Word, word_line
from countersign.cli.rendering import detail, fields, visible_line
from countersign.cli.standing import control_line
from countersign.cli.starting.following import link_lines
from countersign.domain.control import Control
from countersign.domain.escalation import Escalation
from countersign.domain.state import State

Facts = Mapping[str, Any]


def brief_text(told: Facts) -> str:
    """All of it: where the run stands, what was done, what went wrong, and what is open now."""
    return "\n".join([
        fields(_head(told)),
        *_section("PLAN", map(_step, told["plan"])),
        *_section("WHO WAS IN CONTROL", _controls(told["control_history"])),
        *_section("WHAT PEOPLE DID WITH THE RUN", map(_record, told["commands"])),
        *_section("ESCALATIONS", (line for one in told["escalations"] for line in _escalation(one))),
        *_section("DRAFTS", (line for one in told["drafts"] for line in _draft(one)), "none"),
        *_section("QUESTIONS OF THE AGENT", (line for one in told["questions"] for line in _question(one))),
        *_section("PROPOSALS", (line for one in told["proposals"] for line in _proposal(one)), "none"),
        *_section("EFFECT", _execution(told["execution"]), "none: nothing was sent"),
        *_section("QUERIES BEHIND THE FIGURES (the ledger has no other calls of the agent's tools)",
                  (f"v{one['version']} {one['claim']}: {one['query']} = {one['result']}" for one in told["tool_calls"]),
                  "none"),
        *_section("EVIDENCE", told["evidence"], "none"),
        *_section("FAILURES AND REFUSALS", map(_record, told["failures"]), "none"),
        *_section("COMPENSATION", [told["compensation"]]),
        *_section(f"OPEN TO {told['person'] or 'YOU'}", _open(told)),
    ])  # fmt: skip


def _section(head: str, lines: Iterable[str], nothing: str = "") -> list[str]:
    found = [f"  {visible_line(line)}" for line in lines] or ([f"  {nothing}"] if nothing else [])
    return ["", head, *found] if found else []


def _head(told: Facts) -> list[tuple[str, str]]:
    operation, versions = told["operation"], told["versions"]
    return [
        ("operation", f"{operation['operation']} ({operation['case']}, asked by {operation['requester']})"),
        ("state", f"{operation['state']} {operation['reason']}".rstrip()),
        ("ended", told["ended"]),
        ("superseded by", told["superseded_by"]),
        ("supersedes", ", ".join(told["supersedes"])),
        *link_lines(told["links"]),
        ("failure", told["failure"]),
        ("waits for", told["waits_for"]),
        ("in control", told["in_control"]),
        ("policy", versions["policy"] or "nothing was proposed yet"),
        ("in force now", versions["policy_in_force"] or "none"),
        ("rubric", versions["rubric"]),
        ("models", ", ".join(versions["models"])),
    ]


def _controls(history: Sequence[Facts]) -> Iterable[str]:
    """Until when somebody's control would have lasted is of no account once it has changed hands."""
    past = [{**one, "lease_until": None} for one in history[:-1]]
    return (control_line(Control.model_validate_json(json.dumps(one))) for one in (*past, *history[-1:]))


def _step(one: Facts) -> str:
    return f"{'done ' if one['done'] else 'to do'}  {one['step']}{': ' if one['detail'] else ''}{one['detail']}"


def _record(one: Facts) -> str:
    words = {name: one[name] for name in ("sentence", "comment") if one[name]}
    told = {**one["detail"], **words}
    return f"{one['at'][:19]}Z {one['type']} by {one['subject']} {detail(told)}".rstrip()


def _escalation(one: Facts) -> Iterable[str]:
    raised = Escalation.model_validate_json(json.dumps(one))
    until = f", until {one['deadline']}" if raised.deadline is not None else ""
    answered = f" by {raised.answered_by}" if raised.answered_by else ""
    yield (f"{raised.number}: {raised.reason.value} ({raised.code}, {raised.attempts} attempts),"
           f" {raised.severity.value}, to role {raised.role}{until}: {raised.outcome}{answered}")  # fmt: skip
    yield f"   suggested: {raised.suggested_action}"


def _draft(one: Facts) -> Iterable[str]:
    by = one["author"] if one["author"] != "agent" else f"the agent ({one['model']})"
    stands = "passed" if one["passed"] else "not passed"
    graded = f", graded {one['verdict']}" if one["verdict"] else ", not graded"
    yield f"v{one['version']} by {by}: {one['title']} -- {stands}{graded}"
    yield from (f"   {finding}" for finding in one["findings"])


def _question(one: Facts) -> Iterable[str]:
    until = f", until {one['deadline']:%Y-%m-%dT%H:%M:%SZ}" if one["status"] == "pending" else ""
    yield f"{one['number']}: {one['status']}{until}"
    for call in one["calls"]:
        yield f"   {call['id']} {call['tool']}: {json.dumps(call['args'], ensure_ascii=False)}"
    answered = one["answered"] or {"answers": ()}
    for answer in answered["answers"]:
        said = json.dumps(answer["args"], ensure_ascii=False) if answer["args"] is not None else answer["message"]
        yield f"   {answer['call']} {answer['decision']} by {answered['person']}: {said}".removesuffix(": ")


def _proposal(one: Facts) -> Iterable[str]:
    by = one["proposed_by"] if one["proposed_by"] != "agent" else "the agent" if one["draft_version"] else ""
    draft = f" of v{one['draft_version']}" if one["draft_version"] else ""
    name = f"{one['approval_id']}{draft}{f' by {by}' if by else ''}"
    until = f", good until {one['good_until']:%Y-%m-%dT%H:%M:%SZ}" if one["good_until"] else ""
    yield f"{name}: {one['summary']} -> {one['target']}: {one['status']}{until}"
    if one["void_reason"]:
        yield f"   void: {one['void_reason']}"
    for vote in one["votes"]:
        void = f" -- counts no longer: {vote['void']}" if vote["void"] else ""
        yield f"   {vote['decision']} by {vote['person']} at {vote['decided_at']}{void}"


def _execution(one: Facts | None) -> Iterable[str]:
    if one is None:
        return
    receipt = one["receipt"]
    yield f"{one['status']} {one['reason']}".rstrip()
    yield f"key {one['key']}, attempt {one['attempt']}"
    if receipt is not None:
        yield f"outside reference {receipt['reference']}, by {receipt['channel']}"
    if one["unknown"]:
        yield f"not known: {one['unknown']}"
    yield from (f"said so far: {word_line(Word.model_validate_json(json.dumps(word)))}" for word in one["said"])


def _open(told: Facts) -> Iterable[str]:
    if State(told["operation"]["state"]).terminal:
        return ["nothing: the run has ended; to have it done after all, ask again under a new operation id"]
    return map(_possible, told["open"]) if told["person"] else ["see what you may do with --as PERSON"]


def _possible(one: Facts) -> str:
    what = one["what"].replace("_", " ")
    return f"{what}: {one['command']}" if one["allowed"] else f"{what}: no: {one['why']}"
