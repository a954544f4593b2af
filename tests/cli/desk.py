"""A reviewer's desk: a ledger with persons, a report request and proposals of any content, and no Temporal server.

Apart from the office, because what a person is shown must hold for proposals that no honest run would ever make.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from temporalio.testing import ActivityEnvironment

from activities.deciding import DecidingSteps
from activities.interfaces import Message, MessageBatch
from activities.proposing import reviewers_view
from activities.runs import Runs
from countersign import bootstrap
from countersign.cases.case import Submission, read_draft
from countersign.cases.report.rendering import render_report
from countersign.cli import signed_message
from countersign.cli.session import key_path, new_id, now
from countersign.domain.action import Action
from countersign.domain.administration import (
    ADMINISTRATION,
    AdministrationRequest,
    DirectoryChange,
    KeyAddition,
    PersonChange,
)
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.control import Control
from countersign.domain.decision import Outcome, Ruling, Statement
from countersign.domain.directory import Key, Standing
from countersign.domain.draft import DraftObject
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.domain.policy import assess
from countersign.domain.proposal import Proposal
from countersign.domain.report import Claim, DatasetRef, DatasetSchema, Draft, ReportRequest
from countersign.domain.rubric import CriterionResult
from countersign.domain.state import State
from countersign.domain.values import Sha256
from countersign.settings import load_settings
from countersign.signing.keys import new_key_file, public_text
from countersign.signing.statements import sign_decision
from tests.cli.command_line import CommandLine
from tests.ledger import founding
from tests.ledger.builders import draft, proposal
from tests.support.ledgers import with_tables

ROLES = {"rita": {"requester"}, "bob": {"reviewer"}, "carl": {"reviewer"}, "ivan": {"intern"}, "ada": {"admin"},
         "ben": {"admin"}, "cleo": {"admin"}, "lea": {"lead", "operator"}, "max": {"lead"}}  # fmt: skip
TENANT = "acme"
ACME = ("--tenant", TENANT)
NUMBERS = itertools.count(1)
RUN = "run-of-the-desk"
"""The run that asks people, and to which their messages come."""
REQUEST = ReportRequest(
    question="How did sales develop?", channel="public", period="2026",
    dataset=DatasetRef(sha256=sha256_hex(b"evidence"), name="sales.csv", schema=DatasetSchema()),
)  # fmt: skip

GRADES = (
    CriterionResult(id="clear-conclusion", passed=True),
    CriterionResult(id="limitation", passed=True, gap="the two blank amounts could be named\u202e"),
)


class Desk:
    """Tenant `acme` with its first set-up closed; each person has a key file where the commands look for it."""

    def __init__(self, cli: CommandLine) -> None:
        self.cli = cli
        self.settings = load_settings()
        if not self.settings.database_url:
            with_tables(self.settings.home / "ledger.db")
        self.ledger = bootstrap.open_ledger(self.settings)
        self.keys: dict[str, Ed25519PrivateKey] = {}
        self.ledger.directory.set_up(TENANT, self._enrolment(), "operator", now())
        policies = [*bootstrap.load_policies(self.settings).values()]
        self.ledger.directory.adopt(TENANT, policies, "operator", now())
        self.ledger.directory.close_set_up(TENANT, "operator", now())

    def _enrolment(self) -> DirectoryChange:
        self.keys = {name: new_key_file(key_path(self.settings, TENANT, name)) for name in ROLES}
        good_since = now() - timedelta(minutes=1)
        return DirectoryChange(
            persons=tuple(
                PersonChange(person=name, standing=Standing(roles=frozenset(roles))) for name, roles in ROLES.items()
            ),
            keys_added=tuple(
                KeyAddition(person=name, key=Key(id=f"{name}-1", public_key=public_text(key), not_before=good_since))
                for name, key in self.keys.items()
            ),
        )

    def control(self, operation: str) -> Control:
        """Who is in control of an operation's run."""
        return self.ledger.controls.standing(TENANT, operation).control

    def change(self, change: DirectoryChange) -> None:
        """Make a change of the directory, as an executed action makes it."""
        founding.apply(self.ledger, change, f"change-{next(NUMBERS)}", now=now())  # type: ignore[arg-type] # the port

    def register(self, operation: str) -> DraftObject:
        """The operation of a report request, with a draft."""
        request = canonical_bytes(REQUEST.model_dump(mode="json", by_alias=True))
        registered = Operation(
            tenant=TENANT, operation=operation, case="report", requester="rita", statement="a.b.c",
            request_hash=self.ledger.documents.put(TENANT, request), registered_at=now(),
        )  # fmt: skip
        self.ledger.operations.register(registered)
        written = draft()
        self.ledger.drafts.save(TENANT, operation, 1, written, "offline", self.control(operation).version, now())
        return written

    def asked(
        self,
        operation: str = "report-7",
        document: str | None = None,
        *,
        live: str | None = None,
        version: int = 1,
        acting: Mapping[str, Any] = {},
        **changes: Any,
    ) -> Proposal:
        """Put a publication before people; by default the one that case and policy make of the draft."""
        drafted = read_draft(Draft, self.register(operation))
        text = render_report(drafted, REQUEST) if document is None else document
        args = {"channel": "public", "name": f"{operation}.md", "title": "Sales"}
        policy = self.ledger.directory.policies(TENANT)["report"]
        self.put(canonical_bytes(policy.model_dump(mode="json")).decode())
        made = proposal(
            f"{operation}-v{version}", version=version, content=text.encode(), operation=operation,
            acting={"args": args, "channel": "public", "target": f"public:{operation}.md", "environment": "dev",
                    "policy_version": policy.label(), **acting},
            **{"terms": policy.terms, "live": "" if live is None else self.put(live), **self._times(), **changes},
        )  # fmt: skip
        if not {"approvals", "assessment"} & changes.keys():
            made = made.model_copy(update={"assessment": assess(policy, made.action)})
        self.open(made, text, live)
        return made

    def open(self, made: Proposal, text: str, live: str | None = None, claims: tuple[Claim, ...] | None = None) -> None:
        """Store a proposal with its view, as the proposing step does."""
        self.put(text)
        drafted = read_draft(Draft, draft())
        submission = Submission(
            action=made.action, document=text.encode(), reason=made.reason, summary=made.summary,
            evidence=made.evidence, reversibility=made.reversibility, checks=made.checks, verdict=made.verdict,
            cost=made.cost, grades=tuple(one.model_dump(mode="json") for one in (GRADES if made.draft_version else ())),
            claims=tuple(one.model_dump(mode="json") for one in (drafted.claims if claims is None else claims)),
            live=None if live is None else live.encode(),
        )  # fmt: skip
        view = self.ledger.documents.put(TENANT, reviewers_view(made, submission))
        self.ledger.approvals.open(made, RUN, view, now(), room=1_000)

    def ask_change(self, operation: str, change: DirectoryChange) -> Proposal:
        """Put a change of authority before the administrators, as the administration case makes it."""
        request = AdministrationRequest(reason="staff changes", change=change)
        registered = Operation(
            tenant=TENANT, operation=operation, case=ADMINISTRATION, requester="ada", statement="a.b.c",
            request_hash=self.put(canonical_bytes(request.model_dump(mode="json")).decode()), registered_at=now(),
        )  # fmt: skip
        self.ledger.operations.register(registered)
        policy = self.ledger.directory.policies(TENANT)[ADMINISTRATION]
        case = bootstrap.cases(self.settings, self.ledger)[ADMINISTRATION]
        made = case.submission(registered, 0, policy.label())
        live = made.live or b""
        asked = proposal(f"{operation}-v1", operation=operation).model_copy(
            update={
                "case": ADMINISTRATION, "action": made.action, "action_hash": made.action.hash(), "requester": "ada",
                "summary": made.summary, "document": self.put(made.document.decode()), "live": self.put(live.decode()),
                "assessment": assess(policy, made.action), "terms": policy.terms, "draft_version": 0, **self._times(),
            }
        )  # fmt: skip
        self.open(asked, made.document.decode(), live.decode(), claims=())
        return asked

    def put(self, text: str) -> Sha256:
        """A text in the ledger, by its hash."""
        return self.ledger.documents.put(TENANT, text.encode())

    def signed(self, made: Proposal, person: str, comment: str = "", **changes: Any) -> dict[str, Any]:
        """A signed decision, approve unless changed."""
        moment = now().replace(microsecond=0)
        fields: dict[str, Any] = {
            "installation": self.settings.installation, "person": person, "key_id": f"{person}-1", "tenant": TENANT,
            "operation": made.operation, "approval_id": made.approval_id, "approval_version": made.approval_version,
            "action_hash": made.action_hash, "decision": "approve", "issued_at": moment, "id": new_id(),
            "expires_at": made.execute_by, "comment_hash": self.put(comment) if comment else "",
        }  # fmt: skip
        return {"statement": sign_decision(Statement(**{**fields, **changes}), self.keys[person])}

    def sent(self, operation: str, body: str, name: str = "decide", *, unsigned: bool = False) -> Outcome:
        """What the run's deciding step makes of a message."""
        known = bootstrap.cases(self.settings, self.ledger)
        runs = Runs(self.ledger, now)
        steps = DecidingSteps(self.ledger, runs, self.settings.installation, known, unsigned=unsigned)
        message = Message(id=f"run:{next(NUMBERS)}", name=name, transport="signal", body=body, received_at=now())
        batch = MessageBatch(tenant=TENANT, operation=operation, messages=(message,))
        environment = ActivityEnvironment()
        run = workflow_id(TENANT, operation)
        environment.info = replace(environment.info, workflow_id=run, workflow_run_id=RUN)
        return environment.run(steps.decide, batch).outcomes[0]

    def carry(self) -> None:
        """From now on what the commands send reaches the run's deciding step, as with a server and a worker."""

        async def carried(message: signed_message.Message) -> Outcome:
            return self.sent(message.operation, canonical_bytes(dict(message.body)).decode(), message.name)

        self.cli.monkeypatch.setattr(signed_message, "_sent", carried)

    def stands(self, operation: str, state: State, reason: str = "") -> None:
        """Where the run of an operation says that it stands."""
        self.ledger.operations.move(TENANT, operation, state, reason, now())

    def vote(self, made: Proposal, person: str, comment: str = "", **changes: Any) -> None:
        """A decision that counts."""
        body = canonical_bytes(self.signed(made, person, comment, **changes)).decode()
        outcome = self.sent(made.operation, body)
        assert outcome.ruling == Ruling.ACCEPTED, outcome

    def review(self, operation: str = "report-7", person: str = "") -> str:
        """What a person is shown."""
        viewer = ("--as", person) if person else ()
        return self.cli.done("show", operation, *ACME, "--review", *viewer).out

    def reviewed(self, operation: str = "report-7", person: str = "") -> dict[str, Any]:
        """The same as JSON."""
        viewer = ("--as", person) if person else ()
        shown = self.cli.done("show", operation, *ACME, "--review", "--json", *viewer).json()["review"]
        assert isinstance(shown, dict)
        return shown

    def stored_action(self, sha256: str) -> Action:
        """An action that the ledger keeps under its hash."""
        return Action.model_validate_json(self.ledger.documents.get(TENANT, sha256))

    @staticmethod
    def _times() -> dict[str, Any]:
        moment = now()
        hour = timedelta(hours=1)
        return {"proposed_at": moment, "deadline": moment + hour, "execute_by": moment + 2 * hour}
