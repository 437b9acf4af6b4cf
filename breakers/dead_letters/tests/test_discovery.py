"""Names of streams that are passed over."""

import pytest

from breakers.dead_letters.models import MAX_NAME_LENGTH
from breakers.dead_letters.monitoring import discovery
from breakers.dead_letters.redis_servers import servers


def discover_names():
    names, cursor = set(), ""
    while True:
        found, cursor = discovery.discover_streams(servers.get_server("default"), cursor)
        names |= found
        if not cursor:
            return names


@pytest.mark.parametrize("odd", [b"\xff", b"\0", b"x" * MAX_NAME_LENGTH])
def test_a_name_that_can_not_be_kept_is_passed_over_and_said_once(letters, odd, caplog):
    letters.add()
    letters.redis.xadd(letters.name("odd").encode() + odd, {"a": "b"})

    looks = [discover_names(), discover_names()]

    assert looks == [{letters.name()}] * 2
    events = [one.msg for one in caplog.records if one.name == discovery.__name__]
    assert [line["event"] for line in events] == ["dead_letters.name_skipped"]
    assert events[0]["name"].startswith(letters.name("odd"))
