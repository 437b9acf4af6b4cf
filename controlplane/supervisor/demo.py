"""`demo`: an installation with three sample services and simulated visitors.

They are supervised children without access to the console's database: they have a token, as any
service.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from controlplane.environment import ROOT, Environment
from controlplane.supervisor import application, ports
from controlplane.supervisor.application import Application
from controlplane.supervisor.child import ChildSpec
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.lifeline import SUPERVISOR_PID

SERVICES = ("core", "oracle", "synapse")
BESIDE = ("load", "scenario")
READ_REDIS = {"core", "synapse"}
_THEIRS = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|PYTHON\w+|DEMO_RATE|DEMO_SCENARIO|" + SUPERVISOR_PID, re.ASCII
)
"""Variables passed to the sample services, which get none of the installation's secrets."""


def build(settings: Environment, place: Layout, addresses: Mapping[str, str]) -> Application:
    """The real thing, and the demo on top."""
    app = application.build(settings, place, addresses)
    console = f"http://{ports.HOST}:{settings.port}"
    known = application.child_environment(place, addresses)
    folder, path = place.data / "demo", {"PYTHONPATH": str(ROOT / "client")}
    token = folder / "token"
    chosen = _free_ports()
    environment = {
        **{name: value for name, value in known.items() if _THEIRS.fullmatch(name)},
        **path,
        **{f"DEMO_{name.upper()}_PORT": str(port) for name, port in chosen.items()},
        "DEMO_TOKEN_FILE": str(token),
        "SWITCHGEAR_URL": console,
        "SWITCHGEAR_STATE_DIR": str(folder / "state"),
    }
    prepare = _child("prepare", {**known, **path}, str(token))
    redis = {"REDIS_URL": addresses["REDIS_URL"]}
    named = [
        _child(
            name,
            {
                **environment,
                "SWITCHGEAR_INSTANCE": "demo",
                **(redis if name in READ_REDIS else {}),
            },
        )
        for name in SERVICES
    ]
    return replace(
        app,
        steps=(*app.steps, prepare),
        later=(*named, *(_child(name, environment) for name in BESIDE)),
        says=_welcome(console, f"http://{ports.HOST}:{chosen['core']}"),
    )


def _free_ports() -> dict[str, int]:
    found: dict[str, int] = {}
    while len(found) < len(SERVICES):
        port = ports.pick_free()
        if port not in found.values():
            found[SERVICES[len(found)]] = port
    return found


def _child(name: str, environment: Mapping[str, str], *arguments: str) -> ChildSpec:
    command = (sys.executable, "-m", f"demo.{name}", *arguments)
    return ChildSpec(name, command, environment, Path(ROOT))


def _welcome(console: str, faults: str) -> str:
    rate = os.environ.get("DEMO_RATE") or "20"
    return (
        f"The demo: core, oracle and synapse answer {rate} questions a second. What to try:\n\n"
        "  Engage feature:nl2sql     refused within a second; proof of effect says 3 of 3\n"
        "  Engage segment:finance    a quarter of the visitors is refused, nobody else\n"
        f"  Break a service           {faults}/\n"
        f"  See a budget burn         {console}/slos/oracle-answers/\n"
        f"  Mend dead letters         {console}/dead-letters/ (an amount 12,50 should be 12.50)\n"
        f"  Take oracle down          {console}/breakers/core/oracle/ opens within a second\n"
        f"  See who calls whom        {console}/breakers/map/\n"
        f"  {_story(os.environ.get('DEMO_SCENARIO') or 'auto')}\n\n"
    )


def _story(scenario: str) -> str:
    if scenario == "off":
        return "Without a story           DEMO_SCENARIO is off"
    if scenario != "auto":
        return (
            f"Or watch                  {scenario} plays at once, again and again, and is told here"
        )
    return "Or wait                   a story begins in a few minutes, and is told here"
