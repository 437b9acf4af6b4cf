"""Embedded PostgreSQL: one server on a loopback port, two logins, SCRAM for everything."""

import signal
from dataclasses import dataclass
from pathlib import Path

from controlplane.supervisor import binaries, cluster, identity, ports
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.cluster import Cluster
from controlplane.supervisor.layout import Layout, new_password

_SETTINGS = {
    "listen_addresses": ports.HOST,
    # Socket paths are bounded to some 100 bytes, a checkout's path is not.
    "unix_socket_directories": "",
    "max_connections": "200",  # Four web processes, each with its pool of 24, and all others.
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_checkpoints": "off",
    # Failed statements may contain secrets, such as password hashes, so they aren't logged.
    "log_min_error_statement": "panic",
    "log_timezone": "UTC",
    "timezone": "UTC",
    # A statement waiting for a lock ends when the process that sent it was killed.
    "client_connection_check_interval": "2s",
}
_THROW_AWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class Postgres:
    """A cluster that is ready to be served, on its port for the whole run."""

    cluster: Cluster
    programs: binaries.Binaries
    passwords: dict[str, str]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return self._url(cluster.APPLICATION)

    @property
    def owner_url(self) -> str:
        return self._url(cluster.OWNER)

    def spec(self) -> ChildSpec:
        settings = {**_SETTINGS, "port": str(self.port)}
        if not self.cluster.durable:
            settings |= _THROW_AWAY
        options = [f"--{name}={value}" for name, value in settings.items()]
        return ChildSpec(
            name="postgres",
            command=(str(self.programs.postgres), "-D", str(self.cluster.directory), *options),
            environment=cluster.ENVIRONMENT,
            directory=Path("/"),
            user=self.cluster.user,
            # Fast shutdown: running statements are cancelled, the backends end with the server.
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
            log=self.log,
            prepare=self.cluster.is_vacant,
        )

    def is_ready(self, child: Child) -> bool:
        return child.is_alive and self.cluster.status() == (child.pid, "ready")

    def _url(self, login: str) -> str:
        return (
            f"postgresql://{login}:{self.passwords[login]}@{ports.HOST}:{self.port}"
            f"/{cluster.DATABASE}"
        )


def prepare(layout: Layout, home: Path, *, durable: bool) -> Postgres:
    """Make the cluster under `home` unless it exists; raises `CannotRun`."""
    directory = home / "postgres"
    its_cluster = Cluster(directory, identity.service_user(directory), durable)
    programs = binaries.usable_by(its_cluster.user, binaries.find(its_cluster.major), home)
    passwords = _passwords(layout, its_cluster, programs)
    return Postgres(
        its_cluster, programs, passwords, ports.pick_free(), layout.log / "postgres.log"
    )


def _passwords(layout: Layout, its_cluster: Cluster, programs: binaries.Binaries) -> dict[str, str]:
    """Return both logins' passwords, created on first use.

    The order of writes lets the next start recover from a kill in between.
    """
    roles = (cluster.OWNER, cluster.APPLICATION)
    kept = {role: layout.secret(role) for role in roles}
    passwords = {role: word or new_password() for role, word in kept.items()}
    exists = its_cluster.major is not None
    if exists and passwords != kept:
        its_cluster.change_passwords(programs, passwords)
    for role, word in passwords.items():
        layout.keep_secret(role, word)
    if not exists:
        its_cluster.create(programs, passwords)
    return passwords
