"""Settings: a wrong variable is named, an empty one is not set, and no secret shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from countersign.agents.checkpoints import checkpoints_at
from countersign.domain.errors import ConfigurationRefused
from countersign.ledger.engines import make_engine
from countersign.settings import Settings, load_settings
from tests.support.thread_keys import THREAD_KEYS

VARIABLES = {
    name: str(field.validation_alias or f"COUNTERSIGN_{name.upper()}") for name, field in Settings.model_fields.items()
}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


def test_the_defaults_work_on_one_machine() -> None:
    settings = load_settings()

    assert (settings.installation, settings.environment, settings.openai_api_key) == ("local", "dev", None)
    assert settings.ledger_url == "sqlite:///var/ledger.db"
    assert settings.threads_url == "sqlite:///var/threads.db"
    folders = [settings.evidence_folder, settings.checkpoints_folder, settings.keys_folder, settings.reports_folder]
    assert len(set(folders)) == 4
    assert all(folder.parent == Path("var") for folder in folders)


SET = {
    "home": "data",
    "database_url": "postgresql://u@h/d",
    "installation": "press-1",
    "profile": "dev",
    "environment": "production",
    "policies": "rules",
    "openai_api_key": "sk-secret-1",
    "openai_base_url": "http://127.0.0.1:9/v1",
    "draft_model": "a",
    "grade_model": "b",
    "max_rounds": "7",
    "max_grader_tries": "4",
    "model_streaming": "True",
    "thread_keys": "k1=a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=",
    "max_pending": "9",
    "metrics_address": "127.0.0.1:9464",
}


@pytest.mark.parametrize("name", VARIABLES)
def test_each_variable_sets_its_setting(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(VARIABLES[name], SET[name])

    value = getattr(load_settings(), name)
    assert (value.get_secret_value() if isinstance(value, SecretStr) else str(value)) == SET[name]


WRONG = [
    ("COUNTERSIGN_INSTALLATION", "Press Office", "use 1 to 64 of"),
    ("COUNTERSIGN_INSTALLATION", "a:b", "use 1 to 64 of"),
    ("COUNTERSIGN_PROFILE", "unsigned", "'signed' or 'dev'"),
    ("COUNTERSIGN_PROFILE", "Dev", "'signed' or 'dev'"),
    ("COUNTERSIGN_ENVIRONMENT", "PROD", "use 1 to 64 of"),
    ("OPENAI_BASE_URL", "api.example.com", "an address starts with https:// or http://"),
    ("OPENAI_BASE_URL", "file:etc", "an address starts with https:// or http://"),
    ("COUNTERSIGN_MAX_ROUNDS", "many", "valid integer"),
    ("COUNTERSIGN_MAX_ROUNDS", "0", "greater than or equal to 1"),
    ("COUNTERSIGN_MAX_ROUNDS", "-1", "greater than or equal to 1"),
    ("COUNTERSIGN_MAX_ROUNDS", "11", "less than or equal to 10"),
    ("COUNTERSIGN_MAX_ROUNDS", "1.5", "valid integer"),
    ("COUNTERSIGN_MAX_GRADER_TRIES", "0", "greater than or equal to 1"),
    ("COUNTERSIGN_MAX_GRADER_TRIES", "x", "valid integer"),
]


@pytest.mark.parametrize(("variable", "value", "says"), WRONG)
def test_a_wrong_variable_is_named_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(ConfigurationRefused) as refused:
        load_settings()
    assert refused.value.message.startswith(f"setting {variable}: ")
    assert says in refused.value.message
    assert len(refused.value.message.splitlines()) == 1


@pytest.mark.parametrize("variable", VARIABLES.values())
def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Else an empty key would count as a key, and an empty home as the current folder."""
    bare = load_settings()
    monkeypatch.setenv(variable, "")

    assert load_settings() == bare


def test_only_the_dev_profile_takes_unsigned_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not load_settings().takes_unsigned
    monkeypatch.setenv("COUNTERSIGN_PROFILE", "dev")
    assert load_settings().takes_unsigned


def test_a_dotenv_file_is_read_and_the_environment_is_stronger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("COUNTERSIGN_INSTALLATION=press\nCOUNTERSIGN_ENVIRONMENT=test\nSOMETHING_ELSE=1\n")
    monkeypatch.setenv("COUNTERSIGN_ENVIRONMENT", "production")

    assert (load_settings().installation, load_settings().environment) == ("press", "production")


def test_a_wrong_line_of_a_dotenv_file_is_named_too(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("COUNTERSIGN_MAX_ROUNDS=many\n")
    with pytest.raises(ConfigurationRefused, match=r"^setting COUNTERSIGN_MAX_ROUNDS: "):
        load_settings()

    (tmp_path / ".env").write_bytes(b"COUNTERSIGN_HOME=\xff\n")
    with pytest.raises(ConfigurationRefused, match=r"^settings file \.env: not UTF-8 at byte "):
        load_settings()


@pytest.mark.guarantee("G46")
def test_no_secret_shows_in_settings_or_in_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:secret-2@db/ledger")

    settings = load_settings()
    shown = repr(settings) + str(settings) + repr(settings.openai_api_key)
    assert "secret" not in shown.replace("SecretStr", "")

    monkeypatch.setenv("COUNTERSIGN_MAX_ROUNDS", "many")
    monkeypatch.setenv("OPENAI_BASE_URL", "sk-secret-3")
    with pytest.raises(ConfigurationRefused) as refused:
        load_settings()
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_agents_checkpoints_lie_beside_the_ledger(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """However the address is spelled: what the ledger opens, the agent opens too."""
    monkeypatch.setenv("DATABASE_URL", f"{scheme}://u@h/d")

    settings = load_settings()
    assert settings.threads_url == settings.ledger_url == "postgresql://u@h/d"
    checkpoints_at(settings.threads_url, THREAD_KEYS)
    make_engine(settings.ledger_url)


def test_every_setting_says_what_it_is() -> None:
    assert all(field.description for field in Settings.model_fields.values())
