"""Settings of this installation, from the environment and an optional `.env` file; the README's table is made of this.

Temporal's own settings (address, namespace, TLS, API key, profile) are the standard ones that the `temporal` command
reads too, so they are not here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from countersign.domain.errors import ConfigurationRefused
from countersign.domain.identity import Name

ROOT = Path(__file__).resolve().parents[1]
"""The checkout, where programs and examples lie whatever the current folder is."""


def _web_address(text: str) -> str:
    if not text.startswith(("https://", "http://")):
        raise ValueError("an address starts with https:// or http://")
    return text


def _one_spelling(url: str) -> str:
    """The spellings of PostgreSQL's scheme that people use, as the one that ledger and agent both know."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql://{rest}" if separator and scheme in ("postgres", "postgresql+psycopg") else url


class Settings(BaseSettings):
    """Everything that can be set; each has a default that works on one machine. A variable that is empty is not set."""

    model_config = SettingsConfigDict(
        env_prefix="COUNTERSIGN_",
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    home: Path = Field(Path("var"), description="Folder of this installation's data: ledger, evidence, keys, reports.")
    database_url: Annotated[str, AfterValidator(_one_spelling)] = Field(
        "",
        validation_alias="DATABASE_URL",
        repr=False,
        description="The ledger: `postgresql://...`, or `sqlite:///FILE`. Default: `ledger.db` in the home folder.",
    )
    installation: Name = Field(
        "local", description="Name of this installation; statements signed for another one are refused."
    )
    profile: Literal["signed", "dev"] = Field(
        "signed",
        description="`dev` also takes decisions that nobody signed, for trials on this machine's loopback addresses;"
        " they never count towards two persons.",
    )
    environment: Name = Field("dev", description="What actions are meant for; part of every action's hash.")
    policies: Path = Field(Path("policies"), description="Folder with policy, rubric and channel files.")
    openai_api_key: SecretStr | None = Field(
        None, validation_alias="OPENAI_API_KEY", description="Key of an OpenAI-compatible service. Unset: offline."
    )
    openai_base_url: Annotated[str, AfterValidator(_web_address)] | None = Field(
        None, validation_alias="OPENAI_BASE_URL", description="Address of that service, where it is not OpenAI's own."
    )
    draft_model: str = Field("gpt-5.5", description="Model that drafts.")
    grade_model: str = Field("gpt-5.5", description="Model that grades; better another one than drafts.")
    max_rounds: Annotated[int, Field(ge=1, le=10)] = Field(
        3, description="Draft versions at the most, each with the feedback on the one before."
    )
    max_grader_tries: Annotated[int, Field(ge=1, le=10)] = Field(
        2, description="Grader calls per draft at the most, where the answer cannot be read."
    )

    model_streaming: bool = Field(
        False,
        description="Ask the model service to stream its answers: its time limit then holds from word to word, which a"
        " slow model of one's own needs.",
    )
    thread_keys: SecretStr | None = Field(
        None,
        description="Keys of the agents' checkpoints, `ID=KEY,...` with 32 bytes in base64 each: the first encrypts,"
        " all decrypt. Unset: a file in the home folder's keys, made at the first use.",
    )
    max_pending: Annotated[int, Field(ge=1, le=100_000)] = Field(
        500, description="Proposals and questions of a tenant that may wait for people at once."
    )
    metrics_address: str = Field(
        "", description="Where a worker serves metrics in Prometheus' form, such as `127.0.0.1:9464`. Unset: nowhere."
    )

    @property
    def takes_unsigned(self) -> bool:
        """Whether decisions that nobody signed are ruled on."""
        return self.profile == "dev"

    @property
    def ledger_url(self) -> str:
        """The ledger's address, with its default."""
        return self.database_url or f"sqlite:///{self.home / 'ledger.db'}"

    @property
    def evidence_folder(self) -> Path:
        """Datasets under their hash, a folder per tenant."""
        return self.home / "evidence"

    @property
    def checkpoints_folder(self) -> Path:
        """Signed audit checkpoints, outside the database."""
        return self.home / "checkpoints"

    @property
    def keys_folder(self) -> Path:
        """Private keys made here: the installation's, and `TENANT/PERSON.pem`."""
        return self.home / "keys"

    @property
    def thread_keys_file(self) -> Path:
        """Keys of the agents' checkpoints, where `thread_keys` is not set."""
        return self.keys_folder / "threads.keys"

    @property
    def reports_folder(self) -> Path:
        """Where file channels publish, a folder per channel."""
        return self.home / "published"

    @property
    def threads_url(self) -> str:
        """Where the agent's checkpoints lie: beside the ledger."""
        return (
            self.database_url
            if self.database_url.startswith("postgresql://")
            else f"sqlite:///{self.home / 'threads.db'}"
        )


def load_settings() -> Settings:
    """Read them; ConfigurationRefused names the variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        name = str(detail["loc"][0])
        variable = name if name.isupper() else f"COUNTERSIGN_{name.upper()}"
        raise ConfigurationRefused(f"setting {variable}: {detail['msg'].removeprefix('Value error, ')}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationRefused(f"settings file .env: not UTF-8 at byte {error.start}; save it as UTF-8") from None
