"""Reports above the rate limit are refused, without affecting other senders."""

import pytest

from controlplane.core.errors import TooManyRequests
from controlplane.dataplane.ingest.rate_limiter import INSTANCE, TOKEN, ReportRateLimiter
from controlplane.dataplane.tests.served import BEARER, REPORTER, ask, plane

HEADERS = {"Authorization": f"Bearer {REPORTER}"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def build_identity(instance: str) -> dict[str, str]:
    return {"service": "core", "instance": instance}


def admitted(throttle: ReportRateLimiter, token_id: int, instance: str, times: int) -> int:
    """Return how many of so many reports at once are admitted."""
    count = 0
    for _ in range(times):
        try:
            throttle.check(token_id)
            throttle.admit(token_id, build_identity(instance))
        except TooManyRequests:
            continue
        count += 1
    return count


def test_an_instance_has_a_burst_and_then_its_rate() -> None:
    clock = Clock()
    throttle = ReportRateLimiter(clock)

    assert admitted(throttle, 1, "a", 100) == INSTANCE.burst == 20
    clock.now += 1
    assert admitted(throttle, 1, "a", 100) == INSTANCE.per_second == 5
    clock.now += 3600
    assert admitted(throttle, 1, "a", 100) == 20


def test_a_flood_of_one_instance_harms_no_other_with_the_same_token() -> None:
    clock = Clock()
    throttle = ReportRateLimiter(clock)

    admitted(throttle, 1, "flood", 50_000)

    assert admitted(throttle, 1, "calm", 1) == 1


def test_a_token_has_a_burst_and_then_its_rate_whatever_the_names() -> None:
    clock = Clock()
    throttle = ReportRateLimiter(clock)

    def from_many() -> int:
        return sum(admitted(throttle, 1, f"i{number}", 1) for number in range(5000))

    assert from_many() == TOKEN.burst == 2000
    clock.now += 1
    assert from_many() == TOKEN.per_second == 500
    assert admitted(throttle, 2, "x", 1) == 1


def test_retry_after_is_when_there_is_room_again() -> None:
    clock = Clock()
    throttle = ReportRateLimiter(clock)
    admitted(throttle, 1, "a", 100)

    with pytest.raises(TooManyRequests) as refused:
        throttle.admit(1, build_identity("a"))
    clock.now += refused.value.retry_after

    throttle.admit(1, build_identity("a"))


@pytest.mark.parametrize("document", [{}, {"service": 7, "instance": []}, {"service": "core"}])
def test_a_flood_without_names_harms_no_instance_with_the_same_token(
    document: dict[str, object],
) -> None:
    throttle = ReportRateLimiter(Clock())
    refused = 0
    for _ in range(3000):
        try:
            throttle.admit(1, document)
        except TooManyRequests:
            refused += 1

    assert refused == 3000 - INSTANCE.burst
    assert admitted(throttle, 1, "calm", 1) == 1
    throttle.admit(2, document)


def test_a_token_uses_up_the_share_of_no_instance_of_another() -> None:
    throttle = ReportRateLimiter(Clock())

    admitted(throttle, 1, "a", 100)

    assert admitted(throttle, 2, "a", 100) == INSTANCE.burst


def test_bodies_that_are_no_reports_are_counted_too() -> None:
    served = plane()

    found = [ask(served, "POST", "/api/v1/report", HEADERS, content=b"[") for _ in range(30)]

    statuses = [response.status_code for response in found]
    assert statuses[:20] == [400] * 20
    assert 429 in statuses[20:]


def test_over_http_it_is_429_with_retry_after_and_reads_go_on() -> None:
    served = plane()
    body = b'{"service":"core","instance":"a1","boot":"no uuid","seq":1}'

    found = [ask(served, "POST", "/api/v1/report", HEADERS, content=body) for _ in range(30)]

    statuses = [response.status_code for response in found]
    assert statuses[:20] == [400] * 20
    assert 429 in statuses[20:]
    refused = next(response for response in found if response.status_code == 429)
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "This instance reports too often" in refused.json()["detail"]
    assert ask(served, "GET", "/api/v1/snapshot", BEARER).status_code == 200
