"""Draft versions, with everything that the checks and the graders said of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, JsonValue
from pydantic_core import to_json
from sqlalchemy import ColumnElement, Connection, Row, Table, func, select

from countersign.domain.canonical import sha256_hex
from countersign.domain.draft import DraftObject, Violation
from countersign.domain.errors import Conflict
from countersign.domain.rubric import Grade, Verdict
from countersign.domain.strict_json import check_text
from countersign.domain.values import Sha256
from countersign.ledger.control_rows import check_control
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import draft_checks, draft_grades, drafts
from countersign.ports import Findings, Written

AGENT = "agent"
_NO_MODEL = ""
"""Whose draft no model wrote, a person did."""


class SqlDrafts:
    """ports.Drafts on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def save(
        self,
        tenant: str,
        operation: str,
        version: int,
        draft: DraftObject,
        model: str,
        control_version: int,
        now: datetime,
    ) -> Sha256:
        """Store the agent's version once; as in ports.Drafts."""
        sha256 = _hash(draft)
        with self._store.writing(tenant) as writing:
            writing.lock_known_operation(operation)
            writing.check_running(operation)
            check_control(writing, operation, control_version)
            if _insert(writing, operation, version, draft, AGENT, model, now):
                return sha256
            stored = _content(writing, operation, version)
        if stored != sha256:
            raise Conflict(f"draft v{version} of {operation} is {stored} already, not {sha256}; use a new version")
        return sha256

    def authors(self, tenant: str, operation: str) -> tuple[str, ...]:
        """The persons who wrote any version; as in ports.Drafts."""
        # By the model, which a person has not: somebody can be called as the agent is.
        written = select(drafts.c.author).where(
            drafts.c.tenant == tenant, drafts.c.operation == operation, drafts.c.model == _NO_MODEL
        )  # fmt: skip
        with self._store.reading(tenant) as connection:
            return tuple(dict.fromkeys(connection.execute(written.order_by(drafts.c.version)).scalars()))

    def get(self, tenant: str, operation: str, version: int) -> DraftObject:
        """That version, or NotFound."""
        with self._store.reading(tenant) as connection:
            is_it = _is(drafts, tenant, operation, version)
            draft: DraftObject | None = connection.execute(select(drafts.c.draft).where(is_it)).scalar()
        if draft is None:
            raise absent("draft", f"{operation} v{version}")
        return draft

    def written(self, tenant: str, operation: str, version: int) -> Written | None:
        """That version with the model that wrote it, or nothing."""
        columns = select(drafts.c.draft, drafts.c.model, drafts.c.author)
        with self._store.reading(tenant) as connection:
            row = connection.execute(columns.where(_is(drafts, tenant, operation, version))).first()
        return None if row is None else Written(draft=row.draft, model=row.model, author=row.author)

    def passed(self, tenant: str, operation: str, version: int) -> bool:
        """Whether its latest checks found nothing and its latest grade is satisfied; neither may lack."""
        with self._store.reading(tenant) as connection:
            checked = _latest(connection, draft_checks, tenant, operation, version)
            graded = _latest(connection, draft_grades, tenant, operation, version)
        if checked is None or graded is None:
            return False
        return not checked.violations and graded.grade.verdict == Verdict.SATISFIED

    def grade(self, tenant: str, operation: str, version: int) -> Grade | None:
        """The version's latest grade, or nothing."""
        with self._store.reading(tenant) as connection:
            graded = _latest(connection, draft_grades, tenant, operation, version)
        return None if graded is None else graded.grade

    def feedback(self, tenant: str, operation: str, version: int) -> tuple[str, ...]:
        """What the checks and the latest grade said of a version, a line each."""
        with self._store.reading(tenant) as connection:
            checked = _latest(connection, draft_checks, tenant, operation, version)
            graded = _latest(connection, draft_grades, tenant, operation, version)
        violations: tuple[Violation, ...] = () if checked is None else checked.violations
        return (*(one.sentence() for one in violations), *(() if graded is None else graded.grade.feedback))

    def findings(self, tenant: str, operation: str, version: int) -> Findings:
        """All that was ever said of a version; as in ports.Drafts."""
        content = select(drafts.c.draft).where(_is(drafts, tenant, operation, version))
        checks = select(draft_checks.c.violations).where(_is(draft_checks, tenant, operation, version))
        grades = select(draft_grades.c.grade).where(_is(draft_grades, tenant, operation, version))
        with self._store.reading(tenant) as connection:
            draft = connection.execute(content).scalar()
            if draft is None:
                raise absent("draft", f"{operation} v{version}")
            found = [*connection.execute(checks.order_by(draft_checks.c.number)).scalars()]
            given = [*connection.execute(grades.order_by(draft_grades.c.number)).scalars()]
        return Findings(
            draft=_hash(draft),
            checks={_hash(*violations): violations for violations in found},
            grades={_hash(grade): grade for grade in given},
        )

    def save_checks(
        self,
        tenant: str,
        operation: str,
        version: int,
        violations: Sequence[Violation],
        control_version: int,
        now: datetime,
    ) -> None:
        """Keep what the checks found; as in ports.Drafts."""
        codes: JsonValue = [one.code for one in violations]
        with self._store.writing(tenant) as writing:
            found = {"violations": tuple(violations), "checked_at": now}
            sha256 = _hash(*violations)
            if _add(writing, draft_checks, operation, version, control_version, sha256, found):
                content = _content(writing, operation, version)
                writing.record(
                    "draft.checked", operation, "checks", now, version=version, draft=content, hash=sha256, codes=codes
                )

    def save_grade(
        self,
        tenant: str,
        operation: str,
        version: int,
        grade: Grade,
        rubric: str,
        control_version: int,
        now: datetime,
    ) -> None:
        """Keep the grade; a version that is graded again, after a grader's error say, keeps each answer."""
        names: dict[str, JsonValue] = {"verdict": grade.verdict.value, "rubric": rubric, "model": grade.answer.model}
        with self._store.writing(tenant) as writing:
            sha256 = _hash(grade)
            given = {"grade": grade, "rubric": rubric, "graded_at": now}
            if _add(writing, draft_grades, operation, version, control_version, sha256, given):
                content = _content(writing, operation, version)
                writing.record(
                    "draft.graded", operation, "grader", now, version=version, draft=content, hash=sha256, **names
                )


def latest_version(connection: Connection, tenant: str, operation: str) -> int:
    """The latest version of an operation's draft; 0 where there is none."""
    its = (drafts.c.tenant == tenant) & (drafts.c.operation == operation)
    return connection.execute(select(func.max(drafts.c.version)).where(its)).scalar() or 0


def add_version(writing: Writing, operation: str, draft: DraftObject, author: str, now: datetime) -> None:
    """Store a person's draft beside those before it, as the next version; the caller holds the operation's lock."""
    version = latest_version(writing.connection, writing.tenant, operation) + 1
    _insert(writing, operation, version, draft, author, _NO_MODEL, now)


def _insert(
    writing: Writing, operation: str, version: int, draft: DraftObject, author: str, model: str, now: datetime
) -> bool:
    """Insert and record a version; False where it is there already."""
    sha256 = _hash(draft)
    values = {"operation": operation, "version": version, "hash": sha256, "draft": draft}
    if not writing.insert_once(drafts, **values, model=model, author=author, written_at=now):
        return False
    writing.record("draft.written", operation, author, now, version=version, hash=sha256, model=model)
    return True


def _add(
    writing: Writing, table: Table, operation: str, version: int, control_version: int, sha256: Sha256,
    values: dict[str, Any],
) -> bool:  # fmt: skip
    """Add what was said of a version, numbered from 1; False where it is what was said last."""
    writing.lock_known_operation(operation)
    writing.check_running(operation)
    check_control(writing, operation, control_version)
    is_it = _is(drafts, writing.tenant, operation, version)
    if writing.connection.execute(select(drafts.c.version).where(is_it)).first() is None:
        raise absent("draft", f"{operation} v{version}")
    latest = _latest(writing.connection, table, writing.tenant, operation, version)
    if latest is not None and latest.hash == sha256:
        return False
    number = 1 if latest is None else latest.number + 1
    return writing.insert_once(table, operation=operation, version=version, number=number, hash=sha256, **values)


def _latest(connection: Connection, table: Table, tenant: str, operation: str, version: int) -> Row[Any] | None:
    of_version = select(table).where(_is(table, tenant, operation, version))
    return connection.execute(of_version.order_by(table.c.number.desc()).limit(1)).first()


def _is(table: Table, tenant: str, operation: str, version: int) -> ColumnElement[bool]:
    return (table.c.tenant == tenant) & (table.c.operation == operation) & (table.c.version == version)


def _content(writing: Writing, operation: str, version: int) -> Sha256 | None:
    """The hash of the very draft that was looked at; the record of a pass has nothing else to bind."""
    content: Sha256 | None = writing.connection.execute(
        select(drafts.c.hash).where(_is(drafts, writing.tenant, operation, version))
    ).scalar()
    return content


def _hash(*values: BaseModel | DraftObject) -> Sha256:
    """The hash of values as they are stored; texts are checked first, since some have no UTF-8 form."""
    for value in values:
        check_text(value.model_dump() if isinstance(value, BaseModel) else value, "draft")
    return sha256_hex(b"\n".join(to_json(value) for value in values))
