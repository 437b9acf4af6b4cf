"""Rate limit of messages from a socket."""

from controlplane.core.live.token_bucket import Pace


def test_so_many_at_once_and_then_one_a_second():
    pace = Pace(1, 3)

    assert [pace.allows(10) for _ in range(4)] == [True, True, True, False]
    assert not pace.allows(10.9)
    assert pace.allows(11)
    assert not pace.allows(11)


def test_long_rest_earns_no_more_than_a_burst():
    pace = Pace(1, 2)
    pace.allows(0)

    assert [pace.allows(1000) for _ in range(3)] == [True, True, False]


def test_clock_that_stands_still_earns_nothing():
    pace = Pace(100, 1)

    assert pace.allows(5)
    assert not pace.allows(5)
