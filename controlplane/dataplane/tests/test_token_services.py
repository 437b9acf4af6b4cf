"""A token limited to services reports and polls only as these."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controlplane.dataplane.memory.credentials import Credential
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.copies import CREDENTIAL, SAVED, disk
from controlplane.dataplane.tests.served import READER, REPORTER, ask, credential, plane

BOOT = "5b8f2f0e-0000-4000-8000-000000000001"


def limited(*services: str, scopes: tuple[str, ...] = ("switches:read", "report:write")) -> Plane:
    """A plane whose tokens are limited to `services`."""
    made = plane("segment:finance")

    def one(text: str) -> Credential:
        return replace(credential(text, *scopes), services=frozenset(services))

    tokens = {b"reader0001": one(READER), b"reporter01": one(REPORTER)}
    made.state.install_tokens(2, tokens)
    return made


def report(service: str, *dependencies: str) -> bytes:
    breakers = [{"dependency": each, "state": "closed"} for each in dependencies]
    report = {"service": service, "instance": "a1", "boot": BOOT, "seq": 1, "breakers": breakers}
    return json.dumps(report).encode()


@pytest.mark.parametrize(
    "body",
    [report("gateway"), report("core", "core->oracle", "gateway->oracle")],
    ids=["service", "caller of a breaker"],
)
def test_report_as_another_service_is_refused(body: bytes) -> None:
    response = ask(limited("core"), "POST", "/api/v1/report", {"X-API-Key": REPORTER}, content=body)

    assert response.status_code == 403
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "can't act for gateway, only for: core" in response.json()["detail"]


@pytest.mark.parametrize("services", [("core", "gateway"), ()], ids=["of both", "of any"])
def test_report_as_one_of_its_services_goes_on(services: tuple[str, ...]) -> None:
    served = limited(*services)
    served.state.ledger._is_database_away = True  # No database: admitted reports time out.
    body = report("gateway", "core->oracle")

    response = ask(served, "POST", "/api/v1/report", {"X-API-Key": REPORTER}, content=body)

    assert response.status_code == 503


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/snapshot", None),
        ("GET", "/api/v1/snapshot?wait=1", None),
        ("GET", "/api/v1/snapshot/stream", None),
        ("GET", "/api/v1/config?service=core", None),
        ("POST", "/api/v1/check", b'{"segment": "finance"}'),
        ("POST", "/ofrep/v1/evaluate/flags", b"{}"),
        ("POST", "/ofrep/v1/evaluate/flags/segment:finance", b"{}"),
    ],
)
def test_instance_of_another_service_is_refused_on_each_path(
    method: str, path: str, body: bytes | None
) -> None:
    headers = {"X-API-Key": READER, "Switchgear-Instance": "gateway/a1"}

    response = ask(limited("core"), method, path, headers, content=body)

    assert response.status_code == 403
    assert "gateway" in response.text


@pytest.mark.parametrize("name", ["core/a1", None, "no instance"])
def test_instance_of_its_service_is_answered(name: str | None) -> None:
    headers = {"X-API-Key": READER} | ({"Switchgear-Instance": name} if name else {})

    assert ask(limited("core"), "GET", "/api/v1/snapshot", headers).status_code == 200


def test_policies_of_another_service_are_refused() -> None:
    response = ask(limited("core"), "GET", "/api/v1/config?service=gateway", {"X-API-Key": READER})

    assert response.status_code == 403


@pytest.mark.parametrize(
    "limits",
    [
        {"services": frozenset({"gateway", "core"})},
        {"team": "payments", "patterns": frozenset({"segment:pay*"}), "only_owned": True},
    ],
    ids=["services", "team"],
)
def test_limit_is_in_the_copy_on_disk(tmp_path: Path, limits: dict[str, Any]) -> None:
    saved = replace(SAVED, tokens={b"reader0001": replace(CREDENTIAL, **limits)})

    disk(tmp_path).save(saved)

    assert disk(tmp_path).load() == saved


def test_copy_without_limits_is_as_earlier_releases_wrote_it(tmp_path: Path) -> None:
    disk(tmp_path).save(SAVED)

    written = (tmp_path / "current").read_bytes()
    assert not any(name in written for name in (b'"services"', b'"team"', b'"patterns"'))
