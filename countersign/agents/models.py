"""Which chat models draft and grade: a provider's through langchain-openai, or without a key the offline ones.

It stands apart so that provider settings are decided in one place: no retries here (Temporal retries), a time limit
on every call, and plain chat completions, which every OpenAI-compatible server understands.
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
    timeout_seconds: float = 120.0


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
        return ChatModel("offline-grader/1", OfflineGrader(rules=rules))
    return _provider_model(settings, settings.grade_model)


def _provider_model(settings: ModelSettings, name: str) -> ChatModel:
    from langchain_openai import ChatOpenAI  # a second to import, which an offline worker never needs
    from pydantic import SecretStr

    model = ChatOpenAI(
        model=name,
        api_key=SecretStr(settings.api_key),
        base_url=settings.base_url or None,
        timeout=settings.timeout_seconds,
        max_retries=0,
        use_responses_api=False,
    )
    return ChatModel(name, model)
