"""Worker, beat and watchdog as real processes: they survive outages, and end promptly."""

import os
import signal
import time

import psycopg
import pytest

from controlplane.tests.installation import running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
BEAT = ("celery", " beat ")
OURS = {"worker": ("celery", "worker"), "beat": BEAT, "watchdog": ("watchdog",)}


@pytest.fixture
def installation(tmp_path):
    with running(tmp_path / "var") as one:
        yield one


def ask(installation, query):
    with psycopg.connect(installation.services()["database_owner_url"]) as database:
        return dict(database.execute(query).fetchall())


def silence(installation):
    """Return the seconds since each process's last heartbeat."""
    return ask(
        installation,
        "SELECT name, extract(epoch FROM clock_timestamp() - at)::float FROM core_heartbeat",
    )


def runners(installation):
    """Return each tick run in the last three seconds, with the process that ran it."""
    return ask(
        installation,
        "SELECT name, ran_by FROM core_tick WHERE ran_at > clock_timestamp() - interval '3 s'",
    )


def all_alive(installation):
    try:
        found = silence(installation)
    except psycopg.OperationalError:
        return False
    return len(found) == 3 and max(found.values()) < 4


def pids(installation):
    return {name: installation.pid_of(*words) for name, words in OURS.items()}


@pytest.mark.parametrize("service", ["postgres", "redis-server"])
def test_a_service_killed_needs_no_restart_of_ours(installation, service):
    wait_until(lambda: all_alive(installation), 10, lambda: silence(installation))
    before = pids(installation)

    os.kill(installation.pid_of(service), signal.SIGKILL)
    time.sleep(2)

    wait_until(lambda: all_alive(installation), 30, lambda: silence(installation))
    # It always has work; beat itself notes the turn of a tick that has none.
    wait_until(
        lambda: runners(installation).get("dlq.sample") == "worker",
        15,
        lambda: runners(installation),
    )
    assert pids(installation) == before


def test_the_watchdog_runs_what_is_late_and_hands_it_back(installation):
    wanted = {"switches.expire", "outbox.sweep"}

    def run_by(*who):
        return {name for name, by in runners(installation).items() if by in who} >= wanted

    wait_until(lambda: run_by("worker", "beat"), 15, lambda: runners(installation))
    with installation.suspended(*BEAT):
        late = wait_until(lambda: run_by("watchdog"), 15, lambda: runners(installation))
        for _ in range(5):  # At their own pace, not once in five seconds.
            time.sleep(1)
            assert run_by("watchdog")
    back = wait_until(lambda: run_by("worker", "beat"), 15, lambda: runners(installation))
    print(f"taken over after {late:.1f} s, handed back after {back:.1f} s")
    assert late < 8


@pytest.mark.parametrize("frozen", [(), ("postgres",), ("redis-server",)], ids=str)
def test_each_ends_soon_after_a_term_signal(installation, frozen):
    limits = {"watchdog": 1.0, "beat": 3.0, "worker": 8.0}
    for name, limit in limits.items():
        wait_until(lambda: all_alive(installation), 30, lambda: silence(installation))
        pid = installation.pid_of(*OURS[name])
        if frozen:
            with installation.suspended(*frozen):
                time.sleep(2)
                took = _terminate(installation, pid)
        else:
            took = _terminate(installation, pid)
        print(f"{name} with {frozen or 'all well'}: ended after {took:.2f} s")
        assert took < limit


def _terminate(installation, pid):
    os.kill(pid, signal.SIGTERM)
    return wait_until(lambda: pid not in installation.tree(), 15, installation.read_output)
