"""Authorization of emergency orders: tokens with the scope, and names with emergency codes."""

import asyncio
import base64
import os
import time
import unicodedata
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from controlplane.accounts.emergency_codes import codes
from controlplane.dataplane.application import Application
from controlplane.dataplane.emergency import authorization
from controlplane.dataplane.emergency.authorization import FailureLimiter
from controlplane.dataplane.memory.credentials import CodeHash
from controlplane.dataplane.metrics import process_metrics
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.served import BEARER, READER

from .test_emergency_orders import ENGAGE, MAY_ORDER, PATH, make_plane

CODE = "ABCDE-FGHIJ-KLMNO-PQRST-UVWXY"
OTHER_CODE = "BBCDE-FGHIJ-KLMNO-PQRST-UVWXY"
SALT = bytes(range(16))
KIM = "Kimé"


def plane_with_code(folder: Path) -> Plane:
    """Return a plane that knows the code of one person."""
    made = make_plane(folder)
    known = {KIM: CodeHash(7, SALT, codes.hash_code(CODE, SALT))}
    made.state.install_tokens(2, made.state.tokens or {}, known)
    return made


def basic(name: str, code: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{name}:{code}'.encode()).decode()}"}


def send(
    served: Plane,
    headers: dict[str, str],
    *,
    method: str = "POST",
    peer: str = "192.0.2.1",
) -> httpx.Response:
    async def sent() -> httpx.Response:
        transport = httpx.ASGITransport(Application(served), client=(peer, 1000))
        async with httpx.AsyncClient(transport=transport, base_url="http://plane") as client:
            content = {"json": ENGAGE} if method == "POST" else {}
            return await client.request(method, PATH, headers=headers, **content)  # type: ignore[arg-type]

    return asyncio.run(sent())


@pytest.mark.parametrize(
    ("headers", "method", "status"),
    [
        ({}, "POST", 401),
        ({"Authorization": "Bearer sg_orderer01_wrong"}, "POST", 401),
        (BEARER, "POST", 403),
        (MAY_ORDER, "POST", 201),
        ({}, "GET", 401),
        (BEARER, "GET", 200),
        (MAY_ORDER, "GET", 200),
        ({"X-API-Key": READER}, "HEAD", 200),
        ({"X-API-Key": READER}, "PUT", 405),
    ],
)
def test_a_token_needs_the_scope(
    tmp_path: Path, headers: dict[str, str], method: str, status: int
) -> None:
    assert send(make_plane(tmp_path), headers, method=method).status_code == status


@pytest.mark.parametrize("code", [CODE, "abcde fghij klmno pqrst uvwxy", CODE.replace("O", "0")])
def test_a_code_gives_an_order_in_the_persons_name(tmp_path: Path, code: str) -> None:
    served = plane_with_code(tmp_path)

    response = send(served, basic(unicodedata.normalize("NFD", KIM), code))

    assert response.status_code == 201
    assert response.json()["by"] == {"type": "user", "name": KIM, "id": 7}
    assert send(served, basic(KIM, code), method="GET").status_code == 200


@pytest.mark.parametrize(
    ("name", "code"), [(KIM, OTHER_CODE), (KIM, ""), ("nobody", CODE), ("", ""), ("x" * 9999, CODE)]
)
def test_wrong_codes_and_unknown_names_get_the_same_answer(
    tmp_path: Path, name: str, code: str
) -> None:
    served = plane_with_code(tmp_path)

    response = send(served, basic(name, code))

    assert response.status_code == 401
    assert response.json()["detail"] == "The user name or the emergency code is wrong."
    assert not served.state.orders.orders


def test_the_dummy_digest_is_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = plane_with_code(tmp_path)
    digest = codes.hash_code(CODE, codes.DUMMY_SALT)
    unknown = CodeHash(0, codes.DUMMY_SALT, digest)
    monkeypatch.setattr(authorization, "_UNKNOWN", unknown)

    assert send(served, basic("nobody", CODE)).status_code == 401


@pytest.mark.parametrize("value", ["Basic", "Basic ?", "Basic a2lt", "Basic /zpY"])
def test_a_malformed_header_is_refused(tmp_path: Path, value: str) -> None:
    assert send(plane_with_code(tmp_path), {"Authorization": value}).status_code == 401


def test_an_unknown_name_takes_as_long_as_a_wrong_code(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)

    def measure(name: str) -> float:
        began = time.process_time()
        send(served, basic(name, OTHER_CODE))
        return time.process_time() - began

    measure(KIM)
    wrong, unknown = measure(KIM), measure("nobody")

    assert unknown > wrong / 2


def test_codes_are_refused_before_they_are_loaded(tmp_path: Path) -> None:
    served = Plane()

    response = send(served, basic(KIM, CODE))

    assert (response.status_code, "Retry-After" in response.headers) == (503, True)


def test_the_sixth_failure_in_a_minute_is_not_checked(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)
    statuses = [send(served, basic(KIM, OTHER_CODE)).status_code for _ in range(5)]

    sixth = send(served, basic(KIM, CODE))

    assert statuses == [401] * 5
    assert sixth.status_code == 429
    assert 1 <= int(sixth.headers["Retry-After"]) <= 60
    by_token = send(served, MAY_ORDER)
    assert by_token.status_code == 201


def test_failures_count_per_person_and_per_address(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)
    for number in range(5):
        send(served, basic(KIM.upper(), OTHER_CODE), peer=f"192.0.2.{number}")
    for number in range(5):
        send(served, basic(f"someone-{number}", CODE), peer="198.51.100.1")

    assert send(served, basic(KIM, CODE), peer="203.0.113.1").status_code == 429
    assert send(served, basic("other", CODE), peer="198.51.100.1").status_code == 429
    assert send(served, basic("other", CODE), peer="203.0.113.1").status_code == 401


def test_behind_a_trusted_proxy_the_forwarded_address_counts(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)
    served.authorizer.trusted_proxies = ("192.0.2.1/32",)
    for number in range(5):
        send(served, {**basic(f"n{number}", CODE), "X-Forwarded-For": "198.51.100.1"})

    blocked = send(served, {**basic("other", CODE), "X-Forwarded-For": "198.51.100.1"})
    free = send(served, {**basic("other", CODE), "X-Forwarded-For": "198.51.100.2"})

    assert (blocked.status_code, free.status_code) == (429, 401)


def test_successes_are_not_counted(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)

    statuses = {send(served, basic(KIM, CODE), method="GET").status_code for _ in range(7)}

    assert statuses == {200}


def test_no_log_has_a_code(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)

    with capture_logs() as logs:
        send(served, basic(KIM, CODE))
        send(served, basic(KIM, OTHER_CODE))

    assert logs
    assert "ABCDE" not in repr(logs)
    assert "Basic" not in repr(logs)


def test_orders_and_checks_of_codes_are_counted(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)
    send(served, basic(KIM, CODE))
    for _ in range(6):
        send(served, basic(KIM, OTHER_CODE))

    samples = {
        (sample.name, *sorted({*sample.labels.values()} - {str(os.getpid())})): sample.value
        for family in process_metrics(served.state)
        for sample in family.samples
    }

    assert samples["switchgear_emergency_orders_open",] == 1
    assert samples["switchgear_emergency_order_answers_total", "201"] == 1
    checks = "switchgear_emergency_code_checks_total"
    results = ("correct", "wrong", "limited")
    assert [samples[checks, result] for result in results] == [1, 5, 1]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://plane", 201),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[broken", 403),
    ],
)
def test_a_page_of_another_site_cannot_use_a_remembered_code(
    tmp_path: Path, origin: str, status: int
) -> None:
    headers = {**basic(KIM, CODE), "Origin": origin}

    assert send(plane_with_code(tmp_path), headers).status_code == status


def test_a_revoked_code_is_refused_at_once(tmp_path: Path) -> None:
    served = plane_with_code(tmp_path)
    served.state.install_tokens(3, served.state.tokens or {}, {})

    assert send(served, basic(KIM, CODE)).status_code == 401


def test_failures_are_forgotten_after_a_minute_and_beyond_the_most_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authorization, "MAX_KEYS", 3)
    now = 0.0
    limiter = FailureLimiter(lambda: now)
    for _ in range(5):
        limiter.count_try("kim")
    now = 59.0
    with pytest.raises(authorization.TooManyRequests) as refused:
        limiter.count_try("kim", "address")
    assert refused.value.retry_after == 1
    now = 60.0
    limiter.count_try("kim", "address")
    for name in ("a", "b", "c"):
        limiter.count_try(name)
    assert len(limiter._tries) == 3
