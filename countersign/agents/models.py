"""Which chat models draft and grade: a provider's through langchain-openai, or without a key the offline ones.

It stands apart so that provider settings are decided in one place: no retries here (Temporal retries), a time limit
on every call, and plain chat completions, which every OpenAI-compatible server understands.

Of every answer, `response_metadata["model_name"]` is the model that the provider says has answered, empty where it does
not say; `usage_metadata` both token counts as it told them, None where it did not; and
`additional_kwargs["refusal"]` its refusal, where it is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel

from countersign.agents.offline_grader import OfflineGrader
from countersign.agents.rule_model import Rule


@dataclass(frozen=True)
class ModelSettings:
    """Everything about models that a deployment chooses."""

    api_key: str = field(default="", repr=False)
    """Empty: the offline models."""
    base_url: str = ""
    """Empty: the provider's own address."""
    draft_model: str = ""
    grade_model: str = ""
    streaming: bool = False
    """Whether answers come in chunks; they are read only when they are whole."""
    timeout_seconds: float = 120.0
    """For a whole answer; of one that streams, for each wait for its next chunk."""


@dataclass(frozen=True)
class ChatModel:
    """A model with the name that records show."""

    name: str
    model: BaseChatModel


def draft_model(settings: ModelSettings, offline: ChatModel) -> ChatModel:
    """The model that drafts; `offline`, the case's own (`AgentKind.offline`), without a provider."""
    if not settings.api_key:
        return offline
    return _provider_model(settings, settings.draft_model)


def grade_model(settings: ModelSettings, rules: Mapping[str, Rule]) -> ChatModel:
    """The model that grades, another one than drafts where the settings name another; by `rules` without a provider."""
    if not settings.api_key:
        return ChatModel(OfflineGrader.called, OfflineGrader(rules=rules))
    return _provider_model(settings, settings.grade_model)


def _provider_model(settings: ModelSettings, name: str) -> ChatModel:
    from pydantic import SecretStr

    from countersign.agents.provider_chat import ProviderChat  # a second to import, which offline work never needs

    model = ProviderChat(
        model=name,
        api_key=SecretStr(settings.api_key),
        base_url=settings.base_url or None,
        timeout=settings.timeout_seconds,
        limit=settings.timeout_seconds,
        streamed=settings.streaming,
        # Its answers are never handed on in pieces, whoever listens.
        disable_streaming=True,
        max_retries=0,
        use_responses_api=False,
    )
    return ChatModel(name, model)
