"""A client goes on in every child of its process, under a name of its own."""

import contextlib
import json
import threading

import pytest

from tests.fake_console import SNAPSHOT, console
from tests.reporting.program_runner import environment, run
from tests.wait_helpers import wait_until


@pytest.fixture
def there():
    with console() as made:
        made.engage("feature:search")
        yield made


@contextlib.contextmanager
def blinking(there, seconds):
    """A switch that changes all the time."""
    ended = threading.Event()

    def blink():
        while not ended.wait(seconds):
            there.engage("feature:blink")
            ended.wait(seconds)
            there.release("feature:blink")

    thread = threading.Thread(target=blink)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def chat(report):
    return {one["switch"]: (one["allowed"], one["blocked"]) for one in report["checks"]}[
        "feature:chat"
    ]


@pytest.mark.parametrize("way", ["os", "fork", "forkserver", "spawn"])
def test_child_follows_and_reports_on_its_own(there, tmp_path, way):
    with blinking(there, 0.05):
        said = run("family", way, given=environment(there, tmp_path))

    child, parent = (json.loads(line) for line in said.splitlines())
    assert (child["search"], parent["search"]) == (False, False)
    assert (child["source"], parent["source"]) == ("console", "console")
    for one in (child, parent):
        assert one["heard"]
        assert one["instance"].endswith(f"-{one['pid']}")
    assert child["pid"] != parent["pid"]
    last = {report["instance"]: report for report in there.reports}
    assert chat(last[child["instance"]]) == (7, 0)
    assert chat(last[parent["instance"]]) == (12, 0)
    assert last[child["instance"]]["boot"] != last[parent["instance"]]["boot"]


def test_child_that_becomes_another_program_is_no_instance(there, tmp_path):
    with blinking(there, 0.05):
        run("family", "preexec", given=environment(there, tmp_path))

    names = {one.headers["switchgear-instance"] for one in there.requests_for(SNAPSHOT)}
    assert len(names) == 1


@pytest.mark.faults
@pytest.mark.smoke
def test_200_forks_under_load_leave_no_child_hanging(there, tmp_path):
    there.engage("feature:chat")
    with blinking(there, 0.02):
        said = run("repeated_forks", given=environment(there, tmp_path), seconds=110)

    assert said.split(" ", 1) == ["200", "[]\n"]


def test_child_that_ends_as_programs_do_tells_what_it_counted(there, tmp_path):
    run("unclosed_clients", "1", "30", given=environment(there, tmp_path))

    [report] = wait_until(lambda: there.reports)
    assert chat(report) == (1, 0)


def test_locks_that_others_held_at_the_fork_stop_no_child(there, tmp_path):
    locks, code = run("held_locks", given=environment(there, tmp_path)).split()

    assert int(locks) >= 6
    assert code == "0"


def test_threads_import_nothing_that_a_fork_could_cut_short(there, tmp_path):
    with blinking(there, 0.05):  # It waits for a change.
        assert run("late_imports", given=environment(there, tmp_path)) == "[]\n"


def test_locks_that_others_held_at_the_fork_stop_no_child_of_a_closed_client(there, tmp_path):
    locks, code = run("held_locks", "closed", given=environment(there, tmp_path)).split()

    assert int(locks) >= 4
    assert code == "0"
