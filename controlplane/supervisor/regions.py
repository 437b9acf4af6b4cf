"""The demo in three distant regions, each with two relays, which its services use."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from controlplane.environment import ROOT, Environment
from controlplane.supervisor import ports
from controlplane.supervisor.application import RunPlan
from controlplane.supervisor.child import ChildSpec
from controlplane.supervisor.demo import build_demo_plan, child_spec
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.lifeline import SUPERVISOR_PID

REGIONS = ("seoul", "frankfurt", "virginia")
RELAYS = (1, 2)
ONE_WAY_MS = 80
PASSED_VARIABLES = ("PATH", "HOME", "LANG", "TZ")
"""Variables passed to relays and proxies, which get none of the installation's secrets."""


def build_regions_plan(
    settings: Environment, place: Layout, addresses: Mapping[str, str]
) -> RunPlan:
    """Return the plan of the demo whose services use relays behind slow proxies, one per region."""
    folder = place.data / "demo" / "regions"
    token, log = folder.parent / "relays-token", place.log / "relays.log"
    relays = [f"{region}-{number}" for region in REGIONS for number in RELAYS]
    free_ports = iter(_pick_ports(len(REGIONS) + len(relays)))
    proxies = {region: next(free_ports) for region in REGIONS}
    urls = {relay: f"http://{ports.HOST}:{next(free_ports)}" for relay in relays}
    first_relays = [urls[f"{region}-{RELAYS[0]}"] for region in REGIONS]
    plan = build_demo_plan(settings, place, addresses, first_relays, [token])
    children = [
        *(_proxy(region, port, settings.port, folder) for region, port in proxies.items()),
        *(
            _relay(relay, url, proxies[relay.rpartition("-")[0]], folder, token=token, log=log)
            for relay, url in urls.items()
        ),
    ]
    return replace(
        plan,
        later=(*children, *plan.later),
        greeting=_welcome(f"http://{ports.HOST}:{settings.port}", urls, folder) + plan.greeting,
    )


def _pick_ports(number: int) -> set[int]:
    free: set[int] = set()
    while len(free) < number:
        free.add(ports.pick_free())
    return free


def _proxy(region: str, port: int, target: int, folder: Path) -> ChildSpec:
    spec = child_spec(
        "distance",
        {**_environment(), "PYTHONPATH": str(ROOT / "client")},
        *(str(port), str(target), str(ONE_WAY_MS), str(_cut_file(folder, region))),
    )
    return replace(spec, name=f"way-to-{region}")


def _relay(
    name: str, url: str, upstream: int, folder: Path, *, token: Path, log: Path
) -> ChildSpec:
    command = (
        *(sys.executable, "manage.py", "dataplane", "--port", url.rpartition(":")[2]),
        *("--upstream", f"http://{ports.HOST}:{upstream}"),
    )
    environment = {
        **_environment(),
        "PLANE_NAME": name,
        "SWITCHGEAR_DATA_DIR": str(folder / name),
        "SWITCHGEAR_TOKEN_FILE": str(token),
    }

    def prepare() -> bool:
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        return True

    return ChildSpec(name, command, environment, ROOT, prepare=prepare, log=log)


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ} | {
        "PYTHONUNBUFFERED": "1",
        SUPERVISOR_PID: str(os.getpid()),
    }


def _cut_file(folder: Path, region: str) -> Path:
    return folder / f"{region}.cut"


def _welcome(console: str, urls: Mapping[str, str], folder: Path) -> str:
    region = REGIONS[0]
    return (
        f"Three regions, {ONE_WAY_MS} ms away, with two relays each. Things to try:\n\n"
        f"  See all relays            {console}/fleet/\n"
        f"  Cut {region} off             touch {_cut_file(folder, region)}\n"
        f"  Stop something inside it  {urls[f'{region}-{RELAYS[0]}']}/emergency/\n"
        f"  Connect it again          rm {_cut_file(folder, region)}\n\n"
    )
