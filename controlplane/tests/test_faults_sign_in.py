"""Password guessing while Redis hangs: counted at both steps, without waiting for Redis."""

import time

import httpx
import pytest
from django.conf import settings

from controlplane.accounts.authentication.tests.people import PASSWORD
from controlplane.tests.installation import running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
MAKE_KIM = (
    "from controlplane.accounts.authentication.tests.people import kim, with_app; "
    "print(with_app(kim())[0])"
)
MAX_SECONDS = 8
"""Longest answer, on a busy machine."""


class Visitor:
    """A browser at the door; `slowest` is how long one of its answers took at most."""

    def __init__(self, url):
        self.http = httpx.Client(base_url=url, timeout=30)
        self.slowest = 0.0

    def post(self, path, **fields):
        self.http.get("/sign-in/")
        token = {"X-CSRFToken": self.http.cookies["csrftoken"]}
        began = time.monotonic()
        answer = self.http.post(path, data=fields, headers=token)
        self.slowest = max(self.slowest, time.monotonic() - began)
        return answer

    def first(self, password=PASSWORD):
        return self.post("/sign-in/", username="kim", password=password)

    def second(self, code):
        return self.post("/sign-in/second/", code=code)


@pytest.fixture
def installation(tmp_path):
    with running(tmp_path / "var") as one:
        one.manage("shell", "-v0", "-c", MAKE_KIM)
        yield one


@pytest.mark.parametrize("step", ["first", "second"])
def test_guesses_are_counted_while_redis_hangs_and_after_it(installation, step):
    visitor = Visitor(installation.url)

    with installation.suspended("redis-server"):
        wait_until(lambda: visitor.http.get("/health/ready").json()["status"] == "degraded", 15)
        if step == "second":
            assert visitor.first().headers["Location"] == "/sign-in/second/"
        guess = visitor.first if step == "first" else visitor.second
        answers = [guess("no code").status_code for _ in range(settings.AXES_FAILURE_LIMIT)]
        with_the_password = visitor.first()

    wait_until(installation.is_ready, 30, installation.read_output)
    assert answers == [422] * (settings.AXES_FAILURE_LIMIT - 1) + [429]
    assert (with_the_password.status_code, visitor.first().status_code) == (429, 429)
    assert "sessionid" not in visitor.http.cookies or visitor.http.get("/").status_code == 302
    assert visitor.slowest < MAX_SECONDS
