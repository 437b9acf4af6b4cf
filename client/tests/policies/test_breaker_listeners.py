"""Whoever is told of a breaker's step by a hook may do what he likes: no lock is held meanwhile."""

import os
import threading

import pytest

from switchgear import BreakerParameters, BulkheadParameters, Policy
from switchgear.clock import ConsoleClock, SystemTime
from switchgear.policies.dependency import Dependency
from switchgear.policies.documents import DependencyConfig, ForcedMode
from switchgear.policies.resilience_report import ResilienceReport
from tests.policies.registries import EPOCH, apply_config, document, override, registry
from tests.wait_helpers import wait_until

A, B = "core->a", "core->b"
OPEN = ForcedMode("forced_open", 1e12, 1)


def apart(act):
    """Return True if another thread finishes the work while this one waits for it."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(5)
    return not thread.is_alive()


@pytest.mark.parametrize("how", ["document", "end"])
def test_watcher_may_wait_for_a_thread_that_wants_a_policy(how):
    made, results = registry(), []
    breaker = made.get_dependency(A).get_breaker()
    if how == "end":
        apply_config(
            made.get_dependency(A),
            DependencyConfig(override=ForcedMode("forced_open", 5.0, 1)),
            0.0,
        )
    breaker.watch(lambda step: results.append(apart(lambda: made.get_dependency("core->new"))))
    breaker.watch(lambda step: results.append(apart(lambda: made.get_dependency(A).get_breaker())))
    body = document(2, {A: override("forced_open", 2), B: {}})
    breaker.watch(lambda step: results.append(apart(lambda: made.accept("core", "e2", body))))

    if how == "end":
        made.expire_overrides()
    else:
        made.accept("core", EPOCH, document(1, {A: override("forced_open", 1)}))

    assert results[:3] == [True, True, True]
    assert breaker.mode == "forced_open"  # As was said last.


def test_what_is_said_meanwhile_is_put_in_force_by_who_is_at_it():
    dependency = Dependency(A)
    breaker = dependency.get_breaker()
    configs = iter([DependencyConfig(timeout_seconds=2.0)])
    settled = []

    def watcher(step):
        for config in configs:
            apply_config(dependency, config, 0.0)
            settled.append(dependency.is_applied)

    breaker.watch(watcher)
    apply_config(dependency, DependencyConfig(timeout_seconds=1.0, override=OPEN), 0.0)

    assert settled == [False]
    assert dependency.is_applied
    assert dependency.config.timeout_seconds == 2.0
    assert breaker.mode == "normal"


def held_up(made):
    """A document on its way, held up by a hook of the first breaker: how to let it go."""
    entered, go = threading.Event(), threading.Event()
    first = made.get_dependency(A).get_breaker()
    made.get_dependency(B).get_breaker()
    first.watch(lambda step: (entered.set(), go.wait(20)))
    body = document(2, {A: override("forced_open", 2), B: override("forced_open", 2)})
    thread = threading.Thread(target=made.accept, args=("core", EPOCH, body), daemon=True)
    thread.start()
    assert entered.wait(20)
    return thread, go


def test_version_is_told_once_it_is_in_force_everywhere():
    made = registry()
    reporting = ResilienceReport(made, ConsoleClock(SystemTime()), "core")
    made.accept("core", EPOCH, document(1, {}))
    thread, go = held_up(made)

    meanwhile = reporting()
    go.set()
    thread.join(20)
    after = reporting()

    assert meanwhile["config_version"] == 1
    assert {one["dependency"]: one["mode"] for one in meanwhile["breakers"]}[B] == "normal"
    assert after["config_version"] == 2
    assert {one["mode"] for one in after["breakers"]} == {"forced_open"}


@pytest.mark.services
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_of_a_fork_has_what_was_being_put_in_force():
    made = registry()
    thread, go = held_up(made)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            made.after_fork()
            modes = [made.get_dependency(name).get_breaker().mode for name in (A, B)]
            os.write(write, f"{modes} {made.version('core')}".encode())
        finally:
            os._exit(0)
    os.close(write)
    go.set()
    output = os.read(read, 1000).decode()
    os.waitpid(child, 0)
    thread.join(20)

    assert output == "['forced_open', 'forced_open'] 2"


def test_calls_meanwhile_keep_their_bulkhead():
    """The limit is there before policies are told to look for it."""
    dependency = Dependency(A)
    policy = Policy(A, dependency=dependency)
    ask = policy(lambda: None)
    dependency.breaker.force("forced_open")
    results = []
    dependency.breaker.watch(lambda step: results.append(ask()))
    stop = threading.Event()

    def calls():
        while not stop.is_set():
            ask()

    dependency.breaker.unforce()
    thread = threading.Thread(target=calls)
    thread.start()
    try:
        for number in range(300):
            apply_config(dependency, DependencyConfig(timeout_seconds=1 + number), 0.0)
            window = BreakerParameters(window_size=10 + number)
            limit = BulkheadParameters(limit=9)
            apply_config(dependency, DependencyConfig(breaker=window, bulkhead=limit), 0.0)
            wait_until(lambda: policy.bulkhead is not None)
    finally:
        stop.set()
        thread.join()
    assert results
