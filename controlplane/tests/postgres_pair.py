"""A PostgreSQL primary and its streaming replica, as processes of a test."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from controlplane.supervisor import binaries, cluster, identity
from controlplane.supervisor.binaries import Binaries
from controlplane.supervisor.identity import ServiceUser
from controlplane.tests.installation import free_port, wait_until

HOST = "127.0.0.1"
_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "fsync": "off",
    "timezone": "UTC",
}


@dataclass
class PostgresServer:
    """One server: its cluster, programs and port."""

    folder: Path
    programs: Binaries
    user: ServiceUser | None
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def initialize(self) -> None:
        self._make_folder()
        options = ("-U", cluster.SUPERUSER, "--auth=trust", "--no-sync", "--no-instructions")
        self._run(self.programs.initdb, "-D", str(self.folder), *options, "--encoding=UTF8")

    def copy(self, primary: "PostgresServer") -> None:
        """Become a replica of the running `primary`, by a base backup."""
        self._make_folder()
        source = ("-h", HOST, "-p", str(primary.port), "-U", cluster.SUPERUSER)
        options = ("--checkpoint=fast", "--write-recovery-conf", "--no-sync")
        program = self.programs.folder / "pg_basebackup"
        self._run(program, "-D", str(self.folder), *source, *options)

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        with Path(f"{self.folder}.log").open("ab") as output:
            self.process = subprocess.Popen(
                [self.programs.postgres, "-D", self.folder, *settings, f"--port={self.port}"],
                stdout=output,
                stderr=subprocess.STDOUT,
                **self._options(),
            )
        wait_until(self._answers, 30, lambda: Path(f"{self.folder}.log").read_text()[-3000:])

    def kill(self) -> None:
        """Kill the server with all its connections, as a crash of its machine does."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)

    def query(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser; return its rows, if it has any."""
        with psycopg.connect(self.url(cluster.SUPERUSER, database), autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def url(self, login: str, database: str = cluster.DATABASE, port: int | None = None) -> str:
        return f"postgresql://{login}@{HOST}:{port or self.port}/{database}"

    def cut_replication(self) -> None:
        """Stop receiving changes of the primary, as when the network between them fails."""
        self.query("ALTER SYSTEM SET primary_conninfo = ''")
        self.query("SELECT pg_reload_conf()")
        wait_until(lambda: not self.query("SELECT pid FROM pg_stat_wal_receiver"), 10)

    def promote(self) -> None:
        assert self.query("SELECT pg_promote()") == [(True,)]

    def _answers(self) -> bool:
        try:
            return self.query("SELECT 1") == [(1,)]
        except psycopg.OperationalError:
            return False

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700)
        if self.user is not None:
            os.chown(self.folder, self.user.uid, self.user.gid)

    def _run(self, program: Path, *arguments: str) -> None:
        subprocess.run(
            [program, *arguments], check=True, capture_output=True, timeout=60, **self._options()
        )

    def _options(self) -> dict[str, Any]:
        options = self.user.popen_options() if self.user else {}
        return {**options, "env": cluster.ENVIRONMENT, "cwd": "/", "start_new_session": True}


@contextlib.contextmanager
def postgres_pair(folder: Path) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Run a primary with the installation's logins and database, and a replica of it."""
    folder.mkdir()
    with identity.cluster_home(folder, temporary=True) as home:
        user = identity.service_user(home / "primary")
        programs = binaries.usable_by(user, binaries.find(None), home)
        primary = PostgresServer(home / "primary", programs, user)
        replica = PostgresServer(home / "replica", programs, user)
        try:
            primary.initialize()
            primary.start()
            primary.query(f"CREATE ROLE {cluster.OWNER} LOGIN CREATEDB CREATEROLE")
            primary.query(f"CREATE ROLE {cluster.APPLICATION} LOGIN")
            primary.query(f"CREATE DATABASE {cluster.DATABASE} OWNER {cluster.OWNER}")
            replica.copy(primary)
            replica.start()
            yield primary, replica
        finally:
            replica.kill()
            primary.kill()
