"""The live topic of dead letters."""

from dataclasses import replace

import pytest

from breakers.dead_letters import topics
from breakers.dead_letters.models import LetterServer
from breakers.dead_letters.monitoring import sampler
from breakers.tests.fleet import NOW
from controlplane.core.live.topics import find_allowed_topics

from .heaps import heap

pytestmark = pytest.mark.django_db


def test_streams_and_servers_are_told_as_they_stand_and_others_are_left_out(settings):
    with heap(settings) as letters:
        letters.fill(3)
        sampler.sample_servers(NOW)
        one = f"default/{letters.name()}"

        resources = topics.read_topics(
            [one, "server:default", "job:17", "job:x", "default/no", "x", ""], NOW
        )

    assert resources.keys() == {one, "server:default"}
    assert (resources[one]["depth"], resources[one]["name"]) == (3, letters.name())
    assert resources["server:default"]["away"] is False


def test_a_stream_that_no_pattern_matches_any_more_is_not_told(settings):
    with heap(settings) as letters:
        letters.fill(3)
        sampler.sample_servers(NOW)
        settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, patterns=())

        resources = topics.read_topics([f"default/{letters.name()}"], NOW)

    assert resources == {}


def test_a_server_that_is_away_is_told_since_when():
    LetterServer.objects.create(name="billing", is_away=True, since=NOW)

    resources = topics.read_topics(["server:billing"], NOW)

    assert resources["server:billing"]["since"] == "2026-11-21T02:11:30.000000Z"


def test_only_who_may_read_dead_letters_may_listen():
    assert topics is not None
    assert "dlq" in find_allowed_topics({"dlq:read"})
    assert "dlq" not in find_allowed_topics({"breakers:read", "switches:read", "dlq:write"})
