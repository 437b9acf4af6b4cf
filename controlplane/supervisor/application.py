"""The setup steps and long-running processes of an installation, in the order of starting."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.core.environment_variables import read_number
from controlplane.environment import ROOT, Environment
from controlplane.processes import command_lines
from controlplane.supervisor import ports
from controlplane.supervisor.child import ChildSpec
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.lifeline import SUPERVISOR_PID

READY_SECONDS = 60
LOG_NAME = "console.log"
"""Name of the log file of all steps and processes; in the terminal, it would bury the address."""
_NOT_FOR_CHILDREN = {
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"),
    "HEALTH_PORT",  # Of one process: worker, beat and watchdog can't share it.
}


@dataclass(frozen=True)
class RunPlan:
    """The child processes of a run, in the order of starting.

    `steps` run one after another, with `parallel_step` beside them; a step with `keeps_stdout`
    prints the admin's account as JSON. Then `processes` start. Once `probe` succeeds, the welcome
    text and `greeting` are shown, `later` start, and `documentation` runs once. Until then, from
    the beginning of the run, `stand_in` serves the stored snapshot. At the end, `later` stop first.
    """

    parallel_step: ChildSpec
    steps: tuple[ChildSpec, ...]
    processes: tuple[ChildSpec, ...]
    probe: ChildSpec
    greeting: str = ""
    later: tuple[ChildSpec, ...] = ()
    stand_in: ChildSpec | None = None
    documentation: ChildSpec | None = None


def child_environment(place: Layout, addresses: Mapping[str, str]) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name not in _NOT_FOR_CHILDREN},
        **addresses,
        "SWITCHGEAR_DATA_DIR": str(place.data),
        SUPERVISOR_PID: str(os.getpid()),
        "PYTHONUNBUFFERED": "1",
    }


def build_plan(settings: Environment, place: Layout, addresses: Mapping[str, str]) -> RunPlan:
    """Return the plan of an ordinary run, without the demo."""
    environment = child_environment(place, addresses)
    log = place.log / LOG_NAME

    def python(name: str, *arguments: str, **options: Any) -> ChildSpec:
        return ChildSpec(name, (sys.executable, *arguments), environment, ROOT, log=log, **options)

    web = command_lines.web(host=ports.HOST, port=settings.port, workers=web_workers())
    stand_in = command_lines.stand_in(host=ports.HOST, port=settings.port)
    hosts = [host.lstrip(".") for host in settings.allowed_hosts if host != "*"]
    url = f"http://{ports.HOST}:{settings.port}/health/startup"
    probe = ("controlplane.supervisor.probe", url, (hosts or [ports.HOST])[0], str(READY_SECONDS))
    return RunPlan(
        parallel_step=python("static", "manage.py", "collectstatic", "--noinput"),
        steps=(
            python("migrate", "manage.py", "migrate", "--noinput"),
            python("provision", "manage.py", "provision", keeps_stdout=True),
        ),
        processes=(
            python("web", *web),
            python("worker", *command_lines.worker()),
            python("beat", *command_lines.beat()),
            python("watchdog", *command_lines.watchdog()),
        ),
        probe=python("ready", "-m", *probe),
        stand_in=python("data plane", *stand_in, optional=True),
        documentation=_build_documentation(environment, log),
    )


def _build_documentation(environment: Mapping[str, str], log: Path) -> ChildSpec | None:
    """Return the process that builds the documentation, unless another folder has it."""
    if os.environ.get("SWITCHGEAR_DOCS_DIR"):
        return None
    command = (sys.executable, "-m", "controlplane.documentation.build")
    return ChildSpec("documentation", command, environment, ROOT, log=log, optional=True)


def web_workers() -> int:
    """Return the number of web processes; raise `WrongVariable` if WEB_WORKERS is invalid."""
    return read_number(os.environ, "WEB_WORKERS", default=1, low=1, high=64)
