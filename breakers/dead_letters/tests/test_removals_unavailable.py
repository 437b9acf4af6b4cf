"""Letters that leave while their server is away, breaks off, or has no memory left."""

from dataclasses import replace

import pytest
import redis

from breakers.dead_letters import intent_sweeper
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import servers
from breakers.dead_letters.removals import actions, restoration
from breakers.tests.fleet import MINUTE, NOW
from controlplane.core.errors import Conflict, Unavailable

from .redis_process import own_redis, way_to
from .removal_helpers import KIM, REASON, audited, departures

pytestmark = pytest.mark.django_db
NAME, ORIGIN = "axiom:dlq:events", "axiom:events"
RETRY, DROP, RESTORE = (
    servers.script_source(one)[:60].encode() for one in ("retry", "drop", "restore")
)


class Far:
    """A server of the test's own behind a way that can break."""

    def __init__(self, given, way, settings):
        self.way, self.redis = way, redis.Redis.from_url(given.url)
        url = given.url.replace(f":{given.port}/", f":{way.port}/")
        settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers={"far": url})
        self.stream = LetterStream.objects.create(
            server="far", name=NAME, origin=ORIGIN, found_at=NOW
        )

    def add(self, **fields):
        sent = {"order": "17", "dlq_error": "timeout", **fields}
        return self.redis.xadd(NAME, sent).decode()

    def lengths(self):
        return self.redis.xlen(NAME), self.redis.xlen(ORIGIN)


@pytest.fixture
def far(settings, tmp_path):
    with own_redis(tmp_path / "own") as given, way_to(given.port) as way:
        yield Far(given, way, settings)


def act(far, letter, action=actions.retry):
    return action(stream=far.stream, entry_id=letter, reason=REASON, actor=KIM, now=NOW)


def test_a_server_that_is_away_from_the_beginning_changes_nothing(far):
    letter = far.add()
    far.way.breaks_at = b"EVAL"

    with pytest.raises(Unavailable):
        act(far, letter)

    assert departures() == []
    assert far.lengths() == (1, 0)


@pytest.mark.parametrize(
    ("action", "script", "after"),
    [(actions.retry, RETRY, (0, 1)), (actions.discard, DROP, (0, 0))],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_a_server_that_breaks_off_later_is_asked_again_and_nothing_is_lost_or_twice(
    far, action, script, after, is_late
):
    letter = far.add()
    far.way.breaks_at, far.way.is_late = script, is_late

    with pytest.raises(Unavailable, match="is saved"):
        act(far, letter, action)
    intent = departures()
    far.way.breaks_at = b""
    settled = intent_sweeper.sweep_intents(NOW + MINUTE)

    assert far.way.broke > 0
    assert [state for _, state in intent] == ["intended"]
    assert settled == 1
    assert [state for _, state in departures()] == ["done"]
    assert far.lengths() == after
    assert len(audited()) == 1


@pytest.mark.parametrize("is_late", [False, True])
def test_asking_again_after_it_broke_off_is_the_same_retry(far, is_late):
    letter = far.add()
    far.way.breaks_at, far.way.is_late = RETRY, is_late
    with pytest.raises(Unavailable):
        act(far, letter)
    far.way.breaks_at = b""

    result = act(far, letter)

    assert result["retried"] is True
    assert far.lengths() == (0, 1)
    assert departures() == [("retry", "done")]


def test_while_a_server_is_away_intents_wait(far):
    letter = far.add()
    far.way.breaks_at = RETRY
    with pytest.raises(Unavailable):
        act(far, letter)

    settled = intent_sweeper.sweep_intents(NOW + MINUTE)

    assert settled == 0
    assert departures() == [("retry", "intended")]
    assert far.lengths() == (1, 0)


def test_a_restoring_that_broke_off_is_finished_once(far):
    letter = far.add()
    archived = act(far, letter, actions.discard)["departure"]
    far.way.breaks_at, far.way.is_late = RESTORE, True

    with pytest.raises(Unavailable, match="is saved"):
        restoration.restore_letter(departure_id=archived, reason=REASON, actor=KIM, now=NOW)
    far.way.breaks_at = b""
    settled = intent_sweeper.sweep_intents(NOW + MINUTE)

    assert settled == 1
    assert far.lengths() == (1, 0)
    assert Departure.objects.get().new_id == far.redis.xrange(NAME)[0][0].decode()
    assert [row.action for row in audited()] == ["dead_letter.discarded", "dead_letter.restored"]


def test_a_server_that_is_not_configured_any_more_keeps_no_others_waiting(far, settings):
    letter = far.add()
    lost = LetterStream.objects.create(server="a-lost", name=NAME, origin=ORIGIN, found_at=NOW)
    intent = {"by": "user:kim", "fields": b"[]", "intended_at": NOW, "action": "discard"}
    Departure.objects.create(stream=lost, position="1", **intent)
    far.way.breaks_at = DROP
    with pytest.raises(Unavailable):
        act(far, letter, actions.discard)
    far.way.breaks_at = b""

    settled = intent_sweeper.sweep_intents(NOW + MINUTE)

    assert settled == 1
    assert departures() == [("discard", "intended"), ("discard", "done")]


def test_a_server_without_memory_refuses_a_retry_but_lets_letters_be_discarded(far):
    kept, dropped = far.add(), far.add()
    far.redis.config_set("maxmemory", 1)

    with pytest.raises(Conflict, match="maxmemory"):
        act(far, kept)
    act(far, dropped, actions.discard)
    far.redis.config_set("maxmemory", 0)

    assert departures() == [("discard", "done")]
    assert far.lengths() == (1, 0)
    assert act(far, kept)["repeated"] is False


def test_an_intent_waits_until_a_server_has_memory_again(far):
    letter = far.add()
    far.way.breaks_at = RETRY
    with pytest.raises(Unavailable):
        act(far, letter)
    far.way.breaks_at = b""
    far.redis.config_set("maxmemory", 1)

    refused = intent_sweeper.sweep_intents(NOW + MINUTE)
    far.redis.config_set("maxmemory", 0)
    settled = intent_sweeper.sweep_intents(NOW + MINUTE)

    assert (refused, settled) == (0, 1)
    assert far.lengths() == (0, 1)


@pytest.mark.parametrize("forbidden", ["-xadd", "-xdel", "-hset", "-expire"])
def test_a_command_that_is_not_permitted_leaves_nothing_half_done(far, forbidden):
    letter = far.add()
    far.redis.execute_command("ACL", "SETUSER", "default", forbidden)

    with pytest.raises(Conflict, match="returned an error"):
        act(far, letter)
    far.redis.execute_command("ACL", "SETUSER", "default", "+@all")

    assert departures() == []
    assert far.lengths() == (1, 0)
    assert act(far, letter)["retried"] is True
    assert far.lengths() == (0, 1)
