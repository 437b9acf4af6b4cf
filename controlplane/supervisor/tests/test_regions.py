"""The demo in regions: relays with no secrets behind slow ways, used by the services."""

import os
from pathlib import Path

import pytest
from django.urls import resolve

from controlplane import environment
from controlplane.supervisor import layout, regions
from controlplane.supervisor.application import RunPlan

from .test_demo import ADDRESSES

RELAYS = [f"{region}-{number}" for region in regions.REGIONS for number in (1, 2)]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPlan:
    monkeypatch.setenv("PORT", "8123")
    monkeypatch.setenv("SECRET_KEY", "x" * 60)
    place = layout.create_layout(tmp_path / "data")
    return regions.build_regions_plan(environment.read_environment(), place, ADDRESSES)


def test_each_region_has_a_slow_way_and_two_relays_before_the_services(plan: RunPlan) -> None:
    names = [child.name for child in plan.later]

    ways = [f"way-to-{region}" for region in regions.REGIONS]
    assert names == [*ways, *RELAYS, "core", "oracle", "synapse", "load", "scenario"]


def test_relays_follow_the_console_by_the_way_to_their_region(plan: RunPlan) -> None:
    children = {child.name: child for child in plan.later}

    for region in regions.REGIONS:
        port, target, delay, _ = children[f"way-to-{region}"].command[-4:]
        assert (target, delay) == ("8123", "80")
        for number in (1, 2):
            command = children[f"{region}-{number}"].command
            assert command[-2:] == ("--upstream", f"http://127.0.0.1:{port}")


def test_relays_get_neither_secrets_nor_the_database(plan: RunPlan, tmp_path: Path) -> None:
    for child in plan.later:
        if child.name in RELAYS:
            assert child.environment["PLANE_NAME"] == child.name
            token = str(tmp_path / "data" / "demo" / "relays-token")
            assert child.environment["SWITCHGEAR_TOKEN_FILE"] == token
            assert not {"SECRET_KEY", *ADDRESSES} & child.environment.keys()


def test_each_service_uses_the_relay_of_a_region(plan: RunPlan) -> None:
    children = {child.name: child for child in plan.later}
    first = [children[f"{region}-1"].command[4] for region in regions.REGIONS]

    used = [children[name].environment["SWITCHGEAR_URL"] for name in ("core", "oracle", "synapse")]

    assert used == [f"http://127.0.0.1:{port}" for port in first]


def test_relays_that_start_have_a_folder_of_their_own(plan: RunPlan) -> None:
    relays = [child for child in plan.later if child.name in RELAYS]

    assert all(child.prepare() for child in relays)
    folders = {child.environment["SWITCHGEAR_DATA_DIR"] for child in relays}
    assert len(folders) == len(RELAYS)
    assert all(os.stat(folder).st_mode & 0o077 == 0 for folder in folders)


def test_the_welcome_names_a_page_that_exists_and_how_to_cut_a_region(plan: RunPlan) -> None:
    cut_file = next(child.command[-1] for child in plan.later if child.name == "way-to-seoul")

    assert f"touch {cut_file}" in plan.greeting
    assert "http://127.0.0.1:8123/fleet/" in plan.greeting
    resolve("/fleet/")
