"""The application's setup steps and long-running processes, as specifications of children."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from controlplane.environment import ROOT, Environment
from controlplane.processes import command_lines
from controlplane.supervisor import ports
from controlplane.supervisor.child import ChildSpec
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.lifeline import SUPERVISOR_PID

READY_SECONDS = 60
_NOT_FOR_CHILDREN = {
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"),
    "HEALTH_PORT",  # Of one process: worker, beat and watchdog can't share it.
}


@dataclass(frozen=True)
class RunPlan:
    """The children of a run, in the order they are started.

    `beside` is a slow step that runs in parallel with `steps`. A step with `keeps_stdout` prints
    the account that can sign in, as a JSON object. `stand_in` serves the stored snapshot until
    `probe` succeeds. Then the welcome text is shown, followed by `says`, and the children in
    `later` are started.
    """

    beside: ChildSpec
    steps: tuple[ChildSpec, ...]
    processes: tuple[ChildSpec, ...]
    probe: ChildSpec
    says: str = ""
    later: tuple[ChildSpec, ...] = ()
    stand_in: ChildSpec | None = None


def child_environment(place: Layout, addresses: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_CHILDREN}
    return {
        **inherited,
        **addresses,
        "SWITCHGEAR_DATA_DIR": str(place.data),
        SUPERVISOR_PID: str(os.getpid()),
        "PYTHONUNBUFFERED": "1",
    }


def build_plan(settings: Environment, place: Layout, addresses: Mapping[str, str]) -> RunPlan:
    """Return the plan of a run without the demo."""
    environment = child_environment(place, addresses)

    def python(
        name: str, *arguments: str, shown: bool = True, keeps_stdout: bool = False
    ) -> ChildSpec:
        command = (sys.executable, *arguments)
        return ChildSpec(name, command, environment, ROOT, shown=shown, keeps_stdout=keeps_stdout)

    web = command_lines.web(host=ports.HOST, port=settings.port, workers=web_workers())
    return RunPlan(
        beside=python("static", "manage.py", "collectstatic", "--noinput", shown=False),
        steps=(
            python("migrate", "manage.py", "migrate", "--noinput", shown=False),
            python("provision", "manage.py", "provision", keeps_stdout=True),
        ),
        processes=(
            python("web", *web),
            python("worker", *command_lines.worker()),
            python("beat", *command_lines.beat()),
            python("watchdog", *command_lines.watchdog()),
        ),
        probe=python("ready", *_probe_arguments(settings), shown=False),
        stand_in=replace(
            python("data plane", *command_lines.stand_in(host=ports.HOST, port=settings.port)),
            optional=True,
        ),
    )


def web_workers() -> int:
    """Return the number of web processes; raise `CannotRun` if WEB_WORKERS is invalid."""
    workers = os.environ.get("WEB_WORKERS") or "1"
    if not (workers.isascii() and workers.isdigit() and 1 <= int(workers) <= 64):
        raise CannotRun("WEB_WORKERS: must be a whole number from 1 to 64", exit_code=2)
    return int(workers)


def _probe_arguments(settings: Environment) -> tuple[str, ...]:
    hosts = [host.lstrip(".") for host in settings.allowed_hosts if host != "*"]
    host = hosts[0] if hosts else ports.HOST
    url = f"http://{ports.HOST}:{settings.port}/health/startup"
    return ("-m", "controlplane.supervisor.probe", url, host, str(READY_SECONDS))
