"""The watchdog runs late ticks only, and never twice at once."""

import threading
import time
from datetime import timedelta

import pytest

from controlplane.core import heartbeats, ticks
from controlplane.core.clock import db_now
from controlplane.core.models import Tick
from controlplane.processes.watchdog import Watchdog

pytestmark = pytest.mark.django_db(transaction=True)


class Probe:
    """A tick that can be watched, and held up."""

    def __init__(self):
        self.calls = 0
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self, now):
        self.calls += 1
        self.may_end.wait(10)
        return 0


@pytest.fixture
def probes(monkeypatch):
    made = {"one": Probe(), "two": Probe()}
    ticks.list_ticks()  # The first call registers those of all apps.
    monkeypatch.setattr(ticks, "_registered", {})
    for name, probe in made.items():
        ticks.tick(name, seconds=10, queue="test")(probe)
    yield made
    for probe in made.values():
        probe.may_end.set()
    wait_until(lambda: not {t.name for t in threading.enumerate()} & set(made))


@pytest.fixture
def watchdog():
    return Watchdog(threading.Event())


def ran(name, seconds_ago, by="worker"):
    ran_at = db_now() - timedelta(seconds=seconds_ago)
    Tick.objects.update_or_create(name=name, defaults={"ran_at": ran_at, "ran_by": by})


def wait_until(condition, seconds=5.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_tick_five_seconds_late_is_run_and_one_in_time_is_not(probes, watchdog):
    ran("one", 15.5)
    ran("two", 14.0)

    watchdog.check_ticks()

    wait_until(lambda: Tick.objects.get(name="one").ran_by == "watchdog")
    assert (probes["one"].calls, probes["two"].calls) == (1, 0)


def test_a_tick_that_is_still_running_is_not_started_again(probes, watchdog):
    probes["one"].may_end.clear()
    ran("one", 60)
    ran("two", 60)

    for _ in range(3):
        watchdog.check_ticks()
    wait_until(lambda: probes["one"].calls and probes["two"].calls)
    probes["one"].may_end.set()
    wait_until(lambda: Tick.objects.get(name="one").ran_by == "watchdog")

    assert probes["one"].calls == 1
    ran("one", 60)
    wait_until(lambda: watchdog.check_ticks() or probes["one"].calls == 2)


def test_what_it_took_over_keeps_its_pace_until_a_worker_is_back(probes):
    watchdog = Watchdog(threading.Event(), startup_seconds=0)
    ran("one", 60, by="worker")
    ran("two", 10.5, by="worker")
    watchdog.check_ticks()
    wait_until(lambda: Tick.objects.get(name="one").ran_by == "watchdog")
    ran("one", 10.5, by="watchdog")

    wait_until(lambda: watchdog.check_ticks() or probes["one"].calls == 2)
    assert probes["two"].calls == 0


def test_tick_that_the_previous_watchdog_ran_is_left_to_the_worker_at_first(probes, watchdog):
    ran("one", 10.5, by="watchdog")
    ran("two", 15.5, by="watchdog")

    watchdog.check_ticks()

    wait_until(lambda: probes["two"].calls == 1)
    assert probes["one"].calls == 0


def test_tick_that_is_late_long_after_the_start_is_taken_over(probes, caplog):
    ran("one", 15.5)
    ran("two", 0)

    Watchdog(threading.Event(), startup_seconds=0).check_ticks()

    wait_until(lambda: probes["one"].calls == 1)
    assert "watchdog.ticks_taken_over" in caplog.text


def test_ticks_that_never_ran_are_run_once_without_a_warning(probes, watchdog, caplog):
    watchdog.check_ticks()
    wait_until(lambda: Tick.objects.filter(ran_by="watchdog").count() == 2)
    watchdog.check_ticks()

    assert (probes["one"].calls, probes["two"].calls) == (1, 1)
    assert "taken_over" not in caplog.text


def test_ticks_of_an_earlier_run_of_the_installation_are_run_without_a_warning(
    probes, watchdog, caplog
):
    ran("one", 3600)
    ran("two", 3600, by="watchdog")

    watchdog.check_ticks()

    wait_until(lambda: (probes["one"].calls, probes["two"].calls) == (1, 1))
    assert "taken_over" not in caplog.text


def test_a_tick_no_worker_runs_after_its_first_run_is_taken_over(probes, watchdog, caplog):
    watchdog.check_ticks()
    wait_until(lambda: Tick.objects.filter(ran_by="watchdog").count() == 2)
    ran("one", 15.5, by="watchdog")

    watchdog.check_ticks()

    wait_until(lambda: probes["one"].calls == 2)
    assert probes["two"].calls == 1
    assert "watchdog.ticks_taken_over" in caplog.text


def test_it_gives_a_sign_of_life(probes, watchdog):
    watchdog.check_ticks()

    assert 0 <= heartbeats.load_ages()["watchdog"] < 1


def test_a_failing_check_ends_nothing(probes, monkeypatch, caplog):
    stop = threading.Event()
    turned = threading.Event()

    def broken():
        turned.set()
        raise RuntimeError("a mistake")

    dog = Watchdog(stop, settle_seconds=0)
    monkeypatch.setattr(dog, "check_ticks", broken)
    thread = threading.Thread(target=dog.run)
    thread.start()

    assert turned.wait(5)
    turned.clear()
    assert turned.wait(5)

    stop.set()
    thread.join(5)
    assert not thread.is_alive()
    assert "watchdog.failed" in caplog.text
