"""A real cluster of two nodes: letters are found, retried and restored, also from node to node."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import redis
from redis.crc import key_slot

from breakers.dead_letters.models import Departure, LetterServer
from breakers.dead_letters.monitoring import groups, sampler, streams
from breakers.dead_letters.redis_servers import reader, samples, servers
from breakers.dead_letters.redis_servers.servers import ServerUnavailable
from breakers.dead_letters.removals import actions, execution, intents, restoration
from breakers.dead_letters.tests.removal_helpers import settle_and_count
from breakers.tests.fleet import NOW, SECOND
from controlplane.core.actors import system_actor

from .redis_process import own_redis

pytestmark = pytest.mark.django_db
ADA = system_actor("shell:ada")
WHY = "the vendor is back since 10:20"
SLOTS = 16384


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[str]:
    """The URL of a cluster of two servers, which have half of the slots each."""
    with ExitStack() as stack:
        nodes = []
        for name in ("one", "two"):
            directory = tmp_path_factory.mktemp(name)
            server = stack.enter_context(own_redis(directory, "cluster-enabled yes"))
            nodes.append((server, stack.enter_context(redis.Redis.from_url(server.url))))
        (first, one), (second, two) = nodes
        one.execute_command("CLUSTER", "ADDSLOTS", *range(SLOTS // 2))
        two.execute_command("CLUSTER", "ADDSLOTS", *range(SLOTS // 2, SLOTS))
        for password, client in ((second.password, one), (first.password, two)):
            client.config_set("masterauth", password)
            client.config_set("requirepass", "one for both")
        one.execute_command("CLUSTER", "MEET", "127.0.0.1", second.port)
        wait_until(lambda: all(each.cluster("INFO")["cluster_state"] == "ok" for _, each in nodes))
        yield f"redis://:one%20for%20both@127.0.0.1:{first.port}"


@pytest.fixture
def cluster(place, settings) -> Iterator[Any]:
    name = f"c{uuid4().hex[:8]}"
    url = place.replace("redis://", "redis+cluster://")
    servers = {**settings.DEAD_LETTERS.servers, name: url}
    patterns = (("axiom:dlq:{stream}", "axiom:{stream}"),)
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers=servers, patterns=patterns)
    with redis.RedisCluster.from_url(place) as client:
        yield Cluster(name, client)
        client.flushall(target_nodes="primaries")


class Cluster:
    """The cluster by the name that it has here, and a client of its own."""

    def __init__(self, name: str, client: Any) -> None:
        self.name, self.redis = name, client

    def stream(self, tag: str) -> Any:
        return streams.find_stream(self.name, f"axiom:dlq:{tag}", NOW)

    def add(self, tag: str, count: int = 1) -> list[str]:
        fields = {"order": "17", "dlq_error": "timeout after 30 s", "dlq_attempts": "3"}
        return [self.redis.xadd(f"axiom:dlq:{tag}", fields).decode() for _ in range(count)]

    def origin(self, tag: str) -> list[dict[bytes, bytes]]:
        return [fields for _, fields in self.redis.xrange(f"axiom:{tag}")]


def wait_until(holds):
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


TAGS = [("{events}", "exactly once"), ("bills", "at least once"), ("b}lls", "at least once")]


@pytest.mark.parametrize(("tag", "promise"), TAGS)
def test_a_retry_reaches_the_origin_once(cluster, tag, promise):
    [entry_id] = cluster.add(tag)
    stream = cluster.stream(tag)
    arguments = {"stream": stream, "entry_id": entry_id, "reason": WHY, "actor": ADA}

    first = actions.retry(**arguments, now=NOW)
    again = actions.retry(**arguments, now=NOW + SECOND)

    assert (first["delivery"], first["repeated"], again["repeated"]) == (promise, False, True)
    assert first["new_id"] == again["new_id"]
    [message] = cluster.origin(tag)
    assert message[b"order"] == b"17"
    assert message[b"dlq_retry_of"] == entry_id.encode()
    assert cluster.redis.xlen(stream.name) == 0


@pytest.mark.parametrize(("tag", "_promise"), TAGS)
def test_intents_carried_out_twice_reach_the_origin_once(cluster, tag, _promise):
    cluster.add(tag, 20)
    stream = cluster.stream(tag)
    entries = reader.read_page(cluster.name, stream.name).entries
    declared = intents.declare_intents(
        stream=stream, entries=entries, action="retry", actor=ADA, reason=WHY, now=NOW
    )

    execution.execute_intents(stream, declared)
    outcomes = execution.execute_intents(stream, declared)
    counts = settle_and_count(stream, declared, outcomes, NOW)

    assert counts == {"done": 20}
    retried = [message[b"dlq_retry_of"].decode() for message in cluster.origin(tag)]
    assert sorted(retried) == sorted(entry.id for entry in entries)
    assert cluster.redis.xlen(stream.name) == 0


@pytest.mark.parametrize("tag", ["bills", "b}lls"])
def test_what_was_added_to_the_origin_and_not_taken_away_is_not_added_again(cluster, tag):
    [entry_id] = cluster.add(tag)
    stream = cluster.stream(tag)
    entry = reader.read_entry(cluster.name, stream.name, entry_id)
    declared = intents.declare_intents(
        stream=stream, entries=[entry], action="retry", actor=ADA, reason=WHY, now=NOW
    )
    execution.execute_intents(stream, declared)
    cluster.redis.delete(stream.name)
    cluster.redis.xadd(stream.name, dict(entry.pairs), id=entry_id)  # As if we had died before.

    outcomes = execution.execute_intents(stream, declared)

    assert [one.kind for one in outcomes.values()] == ["again"]
    assert len(cluster.origin(tag)) == 1
    assert cluster.redis.xlen(stream.name) == 0


@pytest.mark.parametrize(("tag", "_promise"), TAGS)
def test_what_is_discarded_there_can_be_restored(cluster, tag, _promise):
    [entry_id] = cluster.add(tag)
    stream = cluster.stream(tag)
    before = reader.read_entry(cluster.name, stream.name, entry_id)

    actions.discard(stream=stream, entry_id=entry_id, reason=WHY, actor=ADA, now=NOW)
    assert cluster.redis.xlen(stream.name) == 0
    departure = Departure.objects.get(stream=stream)
    done = restoration.restore_letter(
        departure_id=departure.pk, reason=WHY, actor=ADA, now=NOW + SECOND
    )

    restored = reader.read_entry(cluster.name, stream.name, done["new_id"])
    assert restored is not None
    assert restored.pairs == before.pairs
    assert cluster.origin(tag) == []


def test_streams_of_a_cluster_are_found_sampled_and_grouped(cluster):
    cluster.add("{events}", 3)
    cluster.add("orders", 2)

    sampler.sample_servers(NOW)

    depths = {one.name: one.depth for one in streams.list_shown(NOW) if one.server == cluster.name}
    assert depths == {"axiom:dlq:{events}": 3, "axiom:dlq:orders": 2}
    [group] = groups.list_groups(cluster.stream("orders"))
    assert group.count == 2
    assert LetterServer.objects.get(name=cluster.name).is_away is False


def test_a_node_that_hangs_is_found_away_soon_and_the_other_goes_on(cluster, monkeypatch):
    monkeypatch.setattr(servers, "TIMEOUT_SECONDS", 0.5)
    cluster.add("bills")
    cluster.add("jobs")
    names = ["axiom:dlq:bills", "axiom:dlq:jobs"]
    slots = [key_slot(name.encode()) < SLOTS // 2 for name in names]
    assert slots in ([True, False], [False, True]), "they are to be on different nodes"
    hung, other = names
    assert reader.read_page(cluster.name, hung).entries, "it is connected"
    node = cluster.redis.get_node_from_key(hung)
    cluster.redis.get_redis_connection(node).client_pause(1500)
    began = time.monotonic()

    with pytest.raises(ServerUnavailable):
        reader.read_page(cluster.name, hung)

    assert time.monotonic() - began < 1.2
    assert len(reader.read_page(cluster.name, other).entries) == 1
    wait_until(lambda: time.monotonic() - began > 1.5)


def test_a_cluster_that_is_not_there_is_away(settings):
    arguments = {**settings.DEAD_LETTERS.servers, "nowhere": "redis+cluster://127.0.0.1:1"}
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers=arguments)

    with pytest.raises(ServerUnavailable):
        reader.read_page("nowhere", "axiom:dlq:bills")
    with pytest.raises(ServerUnavailable):
        samples.sample_streams("nowhere", ["axiom:dlq:bills"])
