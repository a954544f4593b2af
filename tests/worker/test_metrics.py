"""Where a worker serves its metrics, and what is said where it cannot; what is in them is in test_secrets."""

from __future__ import annotations

import socket

import pytest

from countersign.domain.errors import ConfigurationRefused
from countersign.temporal_client import measured
from countersign.worker_process import main


def test_without_an_address_nothing_is_served() -> None:
    assert measured("") is None


@pytest.mark.parametrize("address", ["metrics", "localhost:9464", "127.0.0.1", "127.0.0.1:99999", ":9464"])
def test_an_address_of_another_form_is_refused_with_what_is_allowed(address: str) -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        measured(address)

    assert refused.value.message.startswith("setting COUNTERSIGN_METRICS_ADDRESS: metrics cannot be served at ")
    assert refused.value.message.endswith("such as 127.0.0.1:9464")
    assert "\n" not in refused.value.message


def test_a_worker_whose_address_is_taken_does_not_start_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("countersign.worker_process._quiet", lambda: None)
    monkeypatch.setenv("PAYMENTS_TOKEN", "")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("COUNTERSIGN_METRICS_ADDRESS", f"127.0.0.1:{taken.getsockname()[1]}")
        assert main("agent") == 1

    said = capsys.readouterr().err
    assert said.startswith("error: setting COUNTERSIGN_METRICS_ADDRESS: ")
    assert "Address already in use" in said
    assert said.count("\n") == 1
