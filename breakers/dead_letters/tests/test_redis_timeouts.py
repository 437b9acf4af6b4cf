"""Timeouts of Redis servers."""

from dataclasses import replace
from uuid import uuid4

import pytest

from breakers.dead_letters.redis_servers import servers
from breakers.dead_letters.redis_servers.servers import (
    LARGE_CALL_BYTES,
    ScriptCall,
    ServerUnavailable,
)

from .redis_process import own_redis


@pytest.fixture
def slow(tmp_path, settings, monkeypatch):
    """A server of its own, by its name, that pauses for a second, twice the time it has."""
    monkeypatch.setattr(servers, "TIMEOUT_SECONDS", 0.5)
    with own_redis(tmp_path) as own:
        name = f"slow-{uuid4().hex[:8]}"
        arguments = {**settings.DEAD_LETTERS.servers, name: own.url}
        settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers=arguments)
        servers.get_server(name).client.client_pause(1000)
        yield name


def test_a_call_that_carries_a_lot_gets_more_time_than_others(slow):
    with pytest.raises(ServerUnavailable):
        servers.get_server(slow).run("sample", ScriptCall(["axiom:dlq:events"]))
    found = servers.get_server(slow).run(
        "sample", ScriptCall(["axiom:dlq:events"], [b"x" * (LARGE_CALL_BYTES + 1)])
    )

    assert found[0] == 0
