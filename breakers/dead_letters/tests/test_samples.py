"""Samples of streams, taken without copying payloads."""

import uuid

import pytest

from breakers.dead_letters.letters import ids
from breakers.dead_letters.redis_servers import samples, servers
from breakers.dead_letters.redis_servers.samples import EMPTY_SAMPLE, NOT_LOOKED_AT

MAX_ID = "18446744073709551615-18446744073709551615"


@pytest.fixture
def client():
    return servers.get_server("default").client


@pytest.fixture
def name(client):
    name = f"axiom:dlq:{uuid.uuid4()}"
    for one in ("0-1", "5-0", "6-0"):
        client.xadd(name, {"a": "x"}, id=one)
    yield name
    client.delete(name)


def sampled(name):
    return samples.sample_streams("default", [name])[name]


def places(sample):
    return tuple(ids.to_entry_id(one) for one in (sample.first, sample.last, sample.last_given))


def test_a_stream_that_stands_as_before_is_not_described_again(name):
    first = sampled(name)
    second = sampled(name)

    assert (first.depth, places(first)) == (3, ("0-1", "6-0", "6-0"))
    assert (second.depth, second.first, second.last) == (3, first.first, first.last)
    assert second.last_given == NOT_LOOKED_AT


@pytest.mark.parametrize(
    ("gone", "added", "depth", "now_at"),
    [
        (["0-1"], "7-0", 3, ("5-0", "7-0", "7-0")),
        (["6-0"], None, 2, ("0-1", "5-0", "6-0")),
        (["5-0"], "7-0", 3, ("0-1", "7-0", "7-0")),
        ([], MAX_ID, 4, ("0-1", MAX_ID, MAX_ID)),
    ],
)
def test_what_changed_since_the_last_look_is_seen(name, client, gone, added, depth, now_at):
    sampled(name)
    for one in gone:
        client.xdel(name, one)
    if added:
        client.xadd(name, {"a": "x"}, id=added)

    sample = sampled(name)

    assert (sample.depth, places(sample)) == (depth, now_at)
    assert sampled(name).depth == depth


def test_a_stream_that_was_made_anew_is_seen(name, client):
    sampled(name)
    client.delete(name)
    for one in ("0-1", "3-0"):
        client.xadd(name, {"a": "x"}, id=one)

    assert places(sampled(name)) == ("0-1", "3-0", "3-0")


def test_a_stream_that_is_gone_is_not_there(name, client):
    sampled(name)
    client.delete(name)

    assert sampled(name) == EMPTY_SAMPLE


def test_one_stream_is_always_looked_at(name):
    sampled(name)

    assert places(samples.sample_stream("default", name))[2] == "6-0"
