"""A console that says what is not so: the last good snapshot stays, and the truth comes through."""

import dataclasses
import tracemalloc

import pytest

from switchgear.evaluation.snapshot import MAX_SERVED_BYTES
from tests import faults
from tests.console.follower_parts import following
from tests.fake_console import STREAM, console
from tests.quick_client import QUICK
from tests.wait_helpers import wait_until

HASTY = dataclasses.replace(QUICK, answer=0.25, silence=0.4, event=0.25)


@pytest.mark.parametrize("lie", faults.EVERYWHERE)
def test_lies_change_nothing_and_the_truth_is_heard_afterwards(lie):
    with console() as there:
        there.engage("feature:chat")
        with following(there, patience=HASTY) as here:
            wait_until(lambda: here.follower.way == "stream", 10)
            asked = len(there.asked)
            lies_told = 1 if lie is faults.come_back_later else 2  # A whole second is between two.
            there.lie = lie
            there.cut()
            wait_until(lambda: len(there.asked) >= asked + lies_told, 20)
            wait_until(lambda: here.follower.way == "down", 20)

            assert here.blocks("chat")
            assert here.follower.error
            assert here.follower.source == "console"

            there.lie = None
            there.cut()
            there.release("feature:chat")
            wait_until(lambda: not here.blocks("chat"), 30)
            wait_until(lambda: here.follower.error is None, 30)


@pytest.mark.parametrize("lie", faults.ON_STREAMS)
def test_a_stream_that_lies_gives_way_to_what_works(lie):
    with console(stream_lie=lie) as there, following(there, patience=HASTY) as here:
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 20)
        there.release("feature:chat")
        wait_until(lambda: not here.blocks("chat"), 20)
        if lie is not faults.storm:
            wait_until(lambda: here.follower.way in ("held", "poll"), 20)


@pytest.mark.parametrize("lie", [faults.refuses, faults.forbids])
def test_a_token_that_is_put_right_is_taken_up_again(lie):
    with console() as there, following(there, patience=HASTY) as here:
        there.lie = lie
        there.cut()
        wait_until(lambda: here.follower.way == "down", 20)
        there.lie = None
        wait_until(lambda: here.follower.way == "stream", 20)


def test_each_outage_is_logged_once_and_so_is_its_end(caplog):
    caplog.set_level("INFO", "switchgear")
    with console(lie=faults.errors) as there, following(there, is_heard=False) as here:
        wait_until(lambda: len(there.asked) > 3, 20)
        there.lie = None
        wait_until(here.follower.synced.is_set, 20)
        wait_until(lambda: here.follower.way == "stream", 20)
    messages = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in messages] == ["WARNING", "INFO"]
    assert f"{there.url}: status 500; no snapshot yet" in messages[0][1]
    assert "is available again" in messages[1][1]


@pytest.mark.parametrize(
    "lie",
    [
        faults.endless_body,
        faults.endless_until_closed,
        faults.negative_chunk,
        faults.endless_headers,
    ],
)
def test_what_never_ends_takes_no_more_memory_than_a_snapshot_may(lie):
    tracemalloc.start()
    try:
        with console() as there, following(there) as here:
            there.lie = lie
            there.cut()
            wait_until(lambda: here.follower.way == "down", 20)
            wait_until(lambda: len(there.asked) > 4, 40)
            assert tracemalloc.get_traced_memory()[1] < 3 * MAX_SERVED_BYTES
    finally:
        tracemalloc.stop()


def test_in_a_storm_of_versions_the_old_ones_are_left_aside():
    with console(stream_lie=faults.storm) as there, following(there) as here:
        wait_until(lambda: here.follower.way == "stream", 20)
        for _ in range(3):
            before = there.version
            wait_until(lambda before=before: here.store.snapshot.version > before, 10)
        assert len(there.requests_for(STREAM)) == 1


def test_the_last_of_several_versions_is_in_force_at_once():
    patient = dataclasses.replace(QUICK, silence=60)
    with (
        console(stream_lie=faults.two_at_once) as there,
        following(there, patience=patient) as here,
    ):
        wait_until(lambda: here.store.snapshot.version == 3, 5)


def test_an_answer_that_nothing_has_changed_counts_only_if_that_was_asked():
    with console(lie=faults.unasked_304) as there, following(there, is_heard=False) as here:
        wait_until(lambda: here.follower.way == "down", 20)
        assert here.follower.error == "unexpected 304 response"
        assert not here.follower.synced.is_set()
