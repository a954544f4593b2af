"""The Temporal dev server from the locked wheel: its command line, ports, and the command `server`.

For one machine and for trying out; any other Temporal server is reached by the standard settings instead.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from countersign.cli.rendering import say
from countersign.domain.errors import ConfigurationRefused, Unavailable
from countersign.settings import load_settings
from workflows.names import SEARCH_ATTRIBUTES

UI_OFFSET = 1000
"""The web UI listens this far above the server's port, as the temporal CLI has it."""


def server(
    ui_port: Annotated[int | None, typer.Option(metavar="PORT", help="Web UI; default: 1000 above the server.")] = None,
) -> None:
    """Run a Temporal dev server with our search attributes.

    It listens where clients look for it: at TEMPORAL_ADDRESS, else at localhost:7233.
    """
    host, port = configured_address()
    web = ui_port or port + UI_OFFSET
    for taken in (port, web):
        require_free(host, taken)
    home = load_settings().home
    home.mkdir(parents=True, exist_ok=True)
    command = server_command(host, port, web, home / "temporal.db")
    say(f"Temporal server at {host}:{port}, web UI at http://{host}:{web}; stop it with Ctrl-C")
    sys.stdout.flush()
    os.execv(command[0], command)


def server_command(host: str, port: int, ui_port: int, database: Path) -> list[str]:
    """The program and its arguments."""
    attributes = [f"--search-attribute={name}={kind}" for name, kind in SEARCH_ATTRIBUTES.items()]
    return [
        str(temporal_program()), "server", "start-dev", "--ip", host, "--port", str(port), "--ui-port", str(ui_port),
        "--db-filename", str(database), "--log-level", "error", *attributes,
    ]  # fmt: skip


def temporal_program() -> Path:
    """The `temporal` program of this virtual environment, or the one on the path."""
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.is_file() else shutil.which("temporal")
    if found is None:
        raise Unavailable("the temporal program is not installed; run: make setup")
    return Path(found)


def configured_address() -> tuple[str, int]:
    """Host and port that clients use by their settings; a dev server makes sense on this machine only."""
    from temporalio.envconfig import ClientConfig

    from countersign.temporal_client import DEFAULT_ADDRESS

    address = ClientConfig.load_client_connect_config().get("target_host", DEFAULT_ADDRESS)
    host, _, port = address.rpartition(":")
    if host not in ("localhost", "127.0.0.1") or not port.isdigit():
        raise ConfigurationRefused(
            f"TEMPORAL_ADDRESS is {address}; a dev server listens on localhost or 127.0.0.1 with a port, such as"
            f" {DEFAULT_ADDRESS}"
        )
    return host, int(port)


def require_free(host: str, port: int) -> None:
    """Unavailable if something listens on the port already."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError):
            raise Unavailable(
                f"port {port} on {host} is taken or not allowed; stop what listens there, or set TEMPORAL_ADDRESS"
                " (server) or --ui-port (web UI)"
            ) from None


def free_port() -> int:
    """A port that nothing listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
