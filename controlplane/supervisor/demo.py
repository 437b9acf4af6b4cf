"""The demo: an installation with three sample services and simulated visitors."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from controlplane.environment import ROOT, Environment
from controlplane.supervisor import application, ports
from controlplane.supervisor.application import RunPlan
from controlplane.supervisor.child import ChildSpec
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.lifeline import SUPERVISOR_PID

SERVICES = ("core", "oracle", "synapse")
BESIDE = ("load", "scenario")
READ_REDIS = {"core", "synapse"}
_PASSED_VARIABLES = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|PYTHON\w+|DEMO_RATE|DEMO_SCENARIO|" + SUPERVISOR_PID, re.ASCII
)
"""Variables passed to the sample services, which get none of the installation's secrets."""


def build_demo_plan(
    settings: Environment,
    place: Layout,
    addresses: Mapping[str, str],
    planes: Sequence[str] = (),
    prepared: Sequence[Path] = (),
) -> RunPlan:
    """Return the plan of a run that also has the demo's services and visitors.

    The services use in turn the data planes whose URLs are in `planes`, or else in `DEMO_PLANES`,
    or else the console. `prepared` are further arguments of `demo.prepare`.
    """
    app = application.build_plan(settings, place, addresses)
    console = f"http://{ports.HOST}:{settings.port}"
    child_variables = application.child_environment(place, addresses)
    folder, path = place.data / "demo", {"PYTHONPATH": str(ROOT / "client")}
    token = folder / "token"
    free_ports: set[int] = set()
    while len(free_ports) < len(SERVICES):
        free_ports.add(ports.pick_free())
    service_ports = dict(zip(SERVICES, free_ports, strict=True))
    passed = {k: v for k, v in child_variables.items() if _PASSED_VARIABLES.fullmatch(k)}
    environment = {
        **passed,
        **path,
        **{f"DEMO_{name.upper()}_PORT": str(port) for name, port in service_ports.items()},
        "DEMO_TOKEN_FILE": str(token),
        "SWITCHGEAR_URL": console,
        "SWITCHGEAR_STATE_DIR": str(folder / "state"),
    }
    prepare = child_spec("prepare", {**child_variables, **path}, str(token), *map(str, prepared))
    of_services = {**environment, "SWITCHGEAR_INSTANCE": "demo"}
    with_redis = {**of_services, "REDIS_URL": addresses["REDIS_URL"]}
    planes = planes or os.environ.get("DEMO_PLANES", "").split() or [console]
    services = [
        child_spec(
            name,
            {
                **(with_redis if name in READ_REDIS else of_services),
                "SWITCHGEAR_URL": planes[number % len(planes)],
            },
        )
        for number, name in enumerate(SERVICES)
    ]
    return replace(
        app,
        steps=(*app.steps, prepare),
        later=(*services, *(child_spec(name, environment) for name in BESIDE)),
        greeting=_welcome(console, f"http://{ports.HOST}:{service_ports['core']}"),
    )


def child_spec(name: str, environment: Mapping[str, str], *arguments: str) -> ChildSpec:
    command = (sys.executable, "-m", f"demo.{name}", *arguments)
    return ChildSpec(name, command, environment, ROOT)


def _welcome(console: str, faults: str) -> str:
    rate = os.environ.get("DEMO_RATE") or "20"
    return (
        f"The demo is running: the services core, oracle and synapse answer {rate} questions per"
        " second. Things to try:\n\n  Engage feature:nl2sql     blocked within a second; confirmed"
        " by 3 of 3 instances\n  Engage segment:finance    blocks a quarter of the visitors, and"
        f" no others\n  Break a service           {faults}/\n  Watch an error budget    "
        f" {console}/slos/oracle-answers/\n  Fix dead letters          {console}/dead-letters/"
        " (replace an amount's comma by a point)\n  Take oracle down          at the address of"
        f" 'Break a service'; see {console}/breakers/core/oracle/\n  See the dependency map   "
        f" {console}/breakers/map/\n "
        f" {_scenario_hint(os.environ.get('DEMO_SCENARIO') or 'auto')}\n\n"
    )


def _scenario_hint(scenario: str) -> str:
    if scenario == "off":
        return "Scenario                  off (DEMO_SCENARIO)"
    if scenario == "auto":
        return "Scenario                  begins if you only watch, and is narrated here"
    return f"Scenario                  {scenario} repeats from now on and is narrated here"
