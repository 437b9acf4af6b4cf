"""An honest console is followed, whichever way there is."""

import pytest

from tests import faults
from tests.console.follower_parts import following, parts
from tests.fake_console import SNAPSHOT, STREAM, console
from tests.wait_helpers import wait_until


def test_what_is_engaged_is_known_after_the_first_answer():
    with console() as there:
        there.engage("feature:chat")
        with following(there) as here:
            assert here.blocks("chat")
            assert here.follower.source == "console"
            assert here.follower.error is None


@pytest.mark.parametrize(
    ("way", "stream_lie", "held_lie"),
    [
        ("stream", None, None),
        ("held", faults.another_page, None),
        ("held", faults.redirects, None),
        ("poll", faults.another_page, faults.errors),
        ("poll", faults.another_page, faults.at_once),
    ],
)
def test_a_change_arrives_by_the_best_way_there_is(way, stream_lie, held_lie):
    with console(stream_lie=stream_lie, held_lie=held_lie) as there, following(there) as here:
        wait_until(lambda: here.follower.way == way, 20, lambda: here.follower.way)

        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)
        there.release("feature:chat")
        wait_until(lambda: not here.blocks("chat"), 10)

        assert here.follower.way == way


def test_a_client_without_streams_only_polls():
    with console() as there, following(there, stream=False) as here:
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)
        assert here.follower.way == "poll"
        assert not there.requests_for(STREAM)
        assert not [request for request in there.asked if "wait" in request.query]


def test_a_stream_that_is_held_back_gives_way_to_held_polls():
    with console(stream_lie=faults.silent_stream) as there, following(there) as here:
        wait_until(lambda: here.follower.way == "held", 20)
        assert here.follower.error is None
        assert len(there.requests_for(STREAM)) == 1


def test_the_console_learns_who_asks_and_what_is_applied():
    with console() as there:
        there.engage("feature:chat")
        with following(there, stream=False, service="서비스") as here:
            wait_until(lambda: len(there.requests_for(SNAPSHOT)) > 1, 10)
            first, second = there.requests_for(SNAPSHOT)[:2]
            assert first.headers["switchgear-instance"] == "서비스/a1"
            assert "switchgear-applied" not in first.headers
            assert "if-none-match" not in first.headers
            assert second.headers["switchgear-applied"] == f"{there.epoch}.{there.version}"
            assert second.headers["if-none-match"] == there.etag
            wait_until(lambda: len(there.requests_for(SNAPSHOT)) > 3, 10)
            assert here.follower.age_seconds() < 5


def test_a_stream_begins_after_what_is_known():
    with console() as there, following(there) as here:
        wait_until(lambda: here.follower.way == "stream", 10)
        [stream] = there.requests_for(STREAM)
        assert stream.headers["last-event-id"] == f"{there.epoch}.{there.version}"
        assert stream.headers["switchgear-instance"] == "core/a1"


def test_another_epoch_is_taken_and_the_one_before_never_again():
    with console() as there, following(there) as here:
        wait_until(lambda: here.follower.way == "stream", 10)
        previous_epoch = there.epoch
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)
        there.restart()
        wait_until(lambda: here.store.snapshot.epoch == there.epoch, 10)
        now, there.epoch = there.epoch, previous_epoch
        there.release("feature:chat")
        wait_until(lambda: here.follower.error is not None, 10)
        assert here.store.snapshot.epoch == now
        assert here.blocks("chat")


def test_a_stream_that_breaks_off_is_taken_up_again():
    with console() as there, following(there) as here:
        wait_until(lambda: here.follower.way == "stream", 10)
        there.cut()
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)
        wait_until(lambda: len(there.requests_for(STREAM)) == 2, 10)


def test_the_clock_goes_by_the_console():
    with console(ahead_seconds=3600) as there, following(there) as here:
        clock = here.store.clock
        wait_until(lambda: abs(clock.now() - clock.time.wall() - 3600) < 3, 10)


@pytest.mark.parametrize("fields", [{"dates": False}, {"ahead_seconds": 2e10}])
def test_a_console_that_has_no_date_is_followed_all_the_same(fields):
    with console(**fields) as there, following(there) as here:
        there.engage("feature:chat")
        wait_until(lambda: here.blocks("chat"), 10)


def test_stopping_takes_no_time_whatever_goes_on():
    for way in ({}, {"lie": faults.hangs}, {"stream_lie": faults.another_page}):
        with console(**way) as there:
            here = parts(there.url)
            here.follower.start()
            wait_until(lambda there=there: len(there.asked) > bool(not there.lie), 20)
            here.follower.stop()
            here.follower.join(2)
            assert not here.follower._thread.is_alive()


def test_the_token_is_shown_nowhere(caplog):
    caplog.set_level("DEBUG")
    with console(lie=faults.errors) as there:
        here = parts(there.url)
        here.follower.start()
        wait_until(lambda: here.follower.error is not None, 10)
        here.follower.stop()
        here.follower.join(5)
    shown = f"{caplog.text} {here.follower.error} {here.follower._client._connection!r}"
    assert "sg_test" not in shown
