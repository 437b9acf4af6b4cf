"""The shell command while Redis hangs: the change is made soon, with a clear message."""

import socket
import time

import pytest

from controlplane.core import wakeups
from controlplane.core.tests.processes import manage
from switches.models import Switch

ENGAGE = (
    *("killswitch", "engage", "--segment", "finance", "--for", "24h"),
    *("--reason", "OpenAI 5xx on completions since 02:10, INC-7"),
)


@pytest.fixture
def hung_redis(settings):
    """Run a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.REDIS_URL = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        yield


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_engage_is_done_and_one_plain_line_says_that_nobody_was_woken(hung_redis):
    done = manage(*ENGAGE)

    assert Switch.objects.get(id="segment:finance").state == "engaged"
    assert (done.returncode, done.stderr) == (0, f"{wakeups.FAILURE_NOTICE}\n")
    assert done.stdout.startswith("segment:finance  engaged")


def test_what_nobody_hears_takes_no_second_however_often(hung_redis):
    waker = wakeups._Waker()
    began = time.monotonic()

    for _ in range(100):
        waker.publish("any", "note")

    assert time.monotonic() - began < 1
