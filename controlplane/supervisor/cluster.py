"""PostgreSQL's data directory ("cluster"): its creation, and the end of left-over processes."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from controlplane.supervisor import lifeline
from controlplane.supervisor.binaries import Binaries
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.identity import ServiceUser
from controlplane.supervisor.layout import new_password, write_private

SUPERUSER = "postgres"
DATABASE = "switchgear"
OWNER = "switchgear_owner"
APPLICATION = "switchgear_app"
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}

# The superuser can only use single-user mode.
_HBA = f"host all {OWNER},{APPLICATION} 127.0.0.1/32 scram-sha-256\n"
_ORPHAN_GRACE_SECONDS = 1.0
_ORPHAN_KILL_SECONDS = 7.0


@dataclass
class Cluster:
    """A PostgreSQL data directory and the user that owns it."""

    directory: Path
    user: ServiceUser | None
    durable: bool
    _occupied_since: float | None = field(default=None, init=False)

    @property
    def major(self) -> str | None:
        """The major version of PostgreSQL that made the cluster; None if there is no cluster."""
        version = self.directory / "PG_VERSION"
        return version.read_text().strip() if version.exists() else None

    def create(self, binaries: Binaries, passwords: dict[str, str]) -> None:
        """Create the cluster with two logins and a database; if killed, only a draft remains."""
        drafts = f"{self.directory.name}.new-"
        for leftover in self.directory.parent.glob(f"{drafts}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        draft = self.directory.with_name(f"{drafts}{secrets.token_hex(6)}")
        fresh = draft / "cluster"
        for folder in (draft, fresh):
            folder.mkdir(mode=0o700)
            self._change_owner(folder)
        self._initdb(binaries, fresh)
        (fresh / "pg_hba.conf").write_text(_HBA)
        self._single_user(
            binaries,
            fresh,
            f"CREATE ROLE {OWNER} LOGIN CREATEDB CREATEROLE PASSWORD '{passwords[OWNER]}'",
            f"CREATE ROLE {APPLICATION} LOGIN PASSWORD '{passwords[APPLICATION]}'",
            f"CREATE DATABASE {DATABASE} OWNER {OWNER}",
            f"REVOKE ALL ON DATABASE {DATABASE} FROM PUBLIC",
            f"GRANT CONNECT ON DATABASE {DATABASE} TO {APPLICATION}",
        )
        try:
            fresh.rename(self.directory)
        except OSError as error:
            raise CannotRun(
                f"{self.directory} exists and is not a PostgreSQL data directory. Move it away."
            ) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def change_passwords(self, binaries: Binaries, passwords: dict[str, str]) -> None:
        """Set the passwords of both logins, which is needed if the stored ones were lost."""
        while not self.is_vacant():
            time.sleep(0.05)
        self._single_user(
            binaries,
            self.directory,
            *(f"ALTER ROLE {role} PASSWORD '{word}'" for role, word in passwords.items()),
        )

    def is_vacant(self) -> bool:
        """Return True if no process uses the cluster; call it repeatedly until it is vacant.

        Processes left by a killed supervisor are terminated after a grace period.
        """
        processes = self._find_processes()
        if not processes:
            (self.directory / "postmaster.pid").unlink(missing_ok=True)
            self._occupied_since = None
            return True
        now = time.monotonic()
        self._occupied_since = self._occupied_since or now
        waited_seconds = now - self._occupied_since
        server = self.status()[0]
        if waited_seconds > _ORPHAN_KILL_SECONDS or (
            waited_seconds > _ORPHAN_GRACE_SECONDS and server not in processes
        ):
            _send_signal(processes, signal.SIGKILL)
        elif waited_seconds > _ORPHAN_GRACE_SECONDS:
            _send_signal([server], signal.SIGINT)
        return False

    def status(self) -> tuple[int, str]:
        """Return the server's process id (0: none) and its state, from `postmaster.pid`."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            lines = (self.directory / "postmaster.pid").read_text().splitlines()
            return int(lines[0]), lines[7].strip() if len(lines) > 7 else "starting"
        return 0, "absent"

    def _find_processes(self) -> list[int]:
        """Return the ids of PostgreSQL's processes whose working directory is this cluster."""
        if sys.platform != "linux":
            return _postgres_without_proc(self.status()[0])
        here = self.directory.stat()
        pids = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # Ended, or another user's.
                    if os.path.samestat((entry / "cwd").stat(), here):
                        pids.append(int(entry.name))
        return pids

    def _initdb(self, binaries: Binaries, directory: Path) -> None:
        # Unused later; initdb requires a password for SCRAM.
        password_file = directory.with_name("password")
        write_private(password_file, new_password())
        self._change_owner(password_file)
        locale = ["--locale=C"]
        if binaries.major != "16":
            # Sorts by code point like C, but supports upper and lower case beyond ASCII.
            locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._execute(
            [
                *(str(binaries.initdb), "-D", str(directory), "-U", SUPERUSER, "--encoding=UTF8"),
                *("--auth=scram-sha-256", f"--pwfile={password_file}", "--no-instructions"),
                *locale,
                *([] if self.durable else ["--no-sync"]),
            ]
        )

    def _single_user(self, binaries: Binaries, directory: Path, *statements: str) -> None:
        options = ["-c", "exit_on_error=true", "-c", "log_checkpoints=off"]
        # Iterations protect weak passwords. These have 256 random bits, and iterations would cost
        # each new connection 2 ms of CPU.
        options += ["-c", "scram_iterations=1"]
        if not self.durable:
            options.append("-F")
        self._execute(
            [str(binaries.postgres), "--single", "-D", str(directory), *options, SUPERUSER],
            "".join(f"{statement};\n" for statement in statements),
        )

    def _execute(self, command: Sequence[str], stdin: str = "") -> None:
        program = Path(command[0]).name
        try:
            done = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
                preexec_fn=partial(lifeline.bind_to_parent, os.getpid(), signal.SIGKILL),
                **(self.user.popen_options() if self.user else {}),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise CannotRun(f"{program} can't be started: {error}") from error
        if done.returncode != 0:
            last_lines = "".join(f"\n    {line}" for line in done.stderr.splitlines()[-20:])
            raise CannotRun(f"{program} failed (exit code {done.returncode}):{last_lines}")

    def _change_owner(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, self.user.uid, self.user.gid)


def _send_signal(processes: Sequence[int], signum: int) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def _postgres_without_proc(pid: int) -> list[int]:
    """Return `[pid]` if `ps` shows it as PostgreSQL, else `[]`; for systems without /proc."""
    if pid == 0:
        return []
    result = subprocess.run(
        ["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return [pid] if "postgres" in result.stdout else []
