"""Embedded PostgreSQL: one server on a loopback port, with two logins by password (SCRAM)."""

import signal
from dataclasses import dataclass
from pathlib import Path

from controlplane.supervisor import binaries, cluster, identity, ports
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.cluster import Cluster
from controlplane.supervisor.layout import Layout, new_password

_SETTINGS = {
    "listen_addresses": ports.HOST,
    # No socket, because its path is limited to about 100 bytes.
    "unix_socket_directories": "",
    "max_connections": "200",  # Four web processes with a pool of 24 each, and other processes.
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_checkpoints": "off",
    # Failed statements may contain secrets, such as password hashes, so they aren't logged.
    "log_min_error_statement": "panic",
    "log_timezone": "UTC",
    "timezone": "UTC",
    # Ends statements that wait for a lock after their client was killed.
    "client_connection_check_interval": "2s",
}
_THROW_AWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class Postgres:
    """The PostgreSQL server to run: its data directory, programs, passwords and port."""

    cluster: Cluster
    programs: binaries.Binaries
    passwords: dict[str, str]
    port: int
    log: Path

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

    def url(self, login: str) -> str:
        address = f"{ports.HOST}:{self.port}/{cluster.DATABASE}"
        return f"postgresql://{login}:{self.passwords[login]}@{address}"


def prepare_server(layout: Layout, home: Path, *, durable: bool) -> Postgres:
    """Return the PostgreSQL server to run, after creating a missing cluster; raise `CannotRun`."""
    directory = home / "postgres"
    data_cluster = Cluster(directory, identity.service_user(directory), durable)
    programs = binaries.usable_by(data_cluster.user, binaries.find(data_cluster.major), home)
    passwords = _prepare_passwords(layout, data_cluster, programs)
    return Postgres(
        data_cluster, programs, passwords, ports.pick_free(), layout.log / "postgres.log"
    )


def _prepare_passwords(
    layout: Layout, data_cluster: Cluster, programs: binaries.Binaries
) -> dict[str, str]:
    """Return both logins' passwords; create missing passwords, and a missing cluster with them.

    A kill at any point leaves stored passwords that fit the cluster.
    """
    roles = (cluster.OWNER, cluster.APPLICATION)
    stored = {role: layout.secret(role) for role in roles}
    passwords = {role: password or new_password() for role, password in stored.items()}
    exists = data_cluster.major is not None
    if exists and passwords != stored:
        data_cluster.change_passwords(programs, passwords)
    for role, password in passwords.items():
        layout.keep_secret(role, password)
    if not exists:
        data_cluster.create(programs, passwords)
    return passwords
