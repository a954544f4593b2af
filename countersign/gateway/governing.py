"""The tools that change who may do what; they rest on what is in force."""

from __future__ import annotations

from countersign.domain.action import Action
from countersign.domain.administration import (
    SCOPE,
    TOOL_VERSION,
    AdministrationRequest,
    DirectoryChange,
    PolicyChange,
    UnfreezeChange,
    content,
    present,
    target,
)
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Drifted
from countersign.domain.proposal import Proposal
from countersign.domain.values import Value
from countersign.gateway.authority_channel import AuthorityChannel
from countersign.gateway.tool import Call, Reach, Words, asked, check_asked, check_word, read


class ChangesDirectory(Value):
    """Arguments of `change_directory`."""

    change: DirectoryChange


class ChangesPolicy(Value):
    """Arguments of `change_policy`."""

    change: PolicyChange


class Unfreezes(Value):
    """Arguments of `unfreeze_effects`."""

    change: UnfreezeChange


class ChangeAuthority:
    """Fulfils `tool.Tool` for one kind of change."""

    version = TOOL_VERSION

    def __init__(self, form: type[ChangesDirectory | ChangesPolicy | Unfreezes]) -> None:
        self._form = form

    def channel(self, action: Action, reach: Reach) -> AuthorityChannel:
        """See `Tool.channel`."""
        read(self._form, action)
        return AuthorityChannel(reach.ledger.directory, action, reach.clock)

    def call(self, action: Action, reach: Reach) -> Call:
        """See `Tool.call`."""
        change = read(self._form, action).change
        # The approved bytes are what is applied, so they must state the very change that the words are about.
        check_word(action, "content_hash", sha256_hex(content(change)))
        words = Words(channel="", target=target(change), scope=SCOPE, amount=None)
        return Call(self.channel(action, reach), words.target, action.idempotency_key(), words)

    def check_evidence(self, proposal: Proposal, reach: Reach) -> None:
        """See `Tool.check_evidence`."""
        action = proposal.action
        change = read(self._form, action).change
        check_asked("change", change, asked(AdministrationRequest, action, reach).change)
        now_in_force = sha256_hex(present(change, reach.ledger.directory.authority(action.tenant)))
        if now_in_force != action.evidence_hash:
            changed = "what the change is about is no longer what it was when it was asked for"
            raise Drifted("evidence", changed, expected=action.evidence_hash, found=now_in_force)
