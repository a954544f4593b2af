"""Imports point one way: the contracts hold, and what must start fast or stay apart really loads nothing more."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from countersign import agents

ROOT = Path(__file__).resolve().parents[2]
AGENT_FRAMEWORK = ["deepagents", "langchain", "langchain_core", "langchain_openai", "langgraph"]
ABOVE_DOMAIN = ["agents", "bootstrap", "cases", "cli", "evidence", "gateway", "ledger", "ports", "settings", "signing"]


def loaded_by(*modules: str) -> set[str]:
    """The names of all modules that a fresh interpreter holds after importing `modules`."""
    program = f"import sys, {', '.join(modules)}; print('\\n'.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_import_contracts_are_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)

    status = lint_imports(config_filename="pyproject.toml", no_cache=True)

    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


@pytest.mark.parametrize("module", ["starter", "worker"])
def test_entry_points_start_without_the_agent_framework(module: str) -> None:
    """It costs two seconds, and a worker that runs no agent has no use for it."""
    assert loaded_by(module).isdisjoint(AGENT_FRAMEWORK)


@pytest.mark.guarantee("G39")
def test_agents_load_nothing_of_the_gateway() -> None:
    """Every module of agents at once: a process that drafts holds no client of an outside system."""
    modules = [module.name for module in pkgutil.walk_packages(agents.__path__, f"{agents.__name__}.")]

    loaded = loaded_by(*modules)

    assert loaded.issuperset(modules)
    assert not [name for name in loaded if name.startswith("countersign.gateway")]


@pytest.mark.parametrize("module", ["activities.interfaces", "workflows.governed_action"])
def test_what_the_sandbox_loads_holds_domain_only(module: str) -> None:
    loaded = loaded_by(module)

    assert not [part for part in ABOVE_DOMAIN if f"countersign.{part}" in loaded]
    assert loaded.isdisjoint([*AGENT_FRAMEWORK, "sqlalchemy", "duckdb", "httpx2"])
