"""Token buckets: bursts, sustained rates, and bounded memory."""

from controlplane.core.rate_limiter import RateLimit, TokenBucket, TokenBuckets


def test_a_bucket_allows_a_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(RateLimit(1, 3))

    assert [bucket.acquire(10) for _ in range(4)] == [True, True, True, False]
    assert not bucket.acquire(10.9)
    assert bucket.acquire(11)
    assert not bucket.acquire(11)


def test_a_long_pause_earns_no_more_than_a_burst() -> None:
    bucket = TokenBucket(RateLimit(1, 2))
    bucket.acquire(0)

    assert [bucket.acquire(1000) for _ in range(3)] == [True, True, False]


def test_a_clock_that_stands_still_earns_nothing() -> None:
    bucket = TokenBucket(RateLimit(100, 1))

    assert bucket.acquire(5)
    assert not bucket.acquire(5)


def test_each_key_has_its_own_bucket_and_wait() -> None:
    buckets = TokenBuckets(RateLimit(5, 2), 10)

    assert [buckets.acquire("a", 0.0) for _ in range(2)] == [0, 0]
    assert round(buckets.acquire("a", 0.0), 6) == 0.2
    assert buckets.acquire("b", 0.0) == 0
    assert buckets.seconds_to_wait("a", 0.2) == 0


def test_memory_is_bounded_whatever_keys_come() -> None:
    buckets = TokenBuckets(RateLimit(1, 2), 100)
    for number in range(10_000):
        buckets.acquire(number, 0.0)

    assert len(buckets) == 100
