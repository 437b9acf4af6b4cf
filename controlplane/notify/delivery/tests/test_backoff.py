"""The pauses between attempts."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.notify.delivery import sender


@given(st.integers(1, sender.MAX_ATTEMPTS), st.floats(0, 1, exclude_max=True))
def test_a_pause_is_a_share_of_a_growing_ceiling(attempts, draw):
    pause = sender.backoff_seconds(attempts, draw)

    assert 0 <= pause < 2 * 3 ** (attempts - 1)
    assert pause == draw * sender.backoff_seconds(attempts, 1.0)


def test_the_first_retry_is_soon_and_the_last_after_a_real_outage():
    ceilings = [sender.backoff_seconds(n, 1.0) for n in range(1, sender.MAX_ATTEMPTS)]

    assert ceilings[0] == 2
    assert 30 * 60 < sum(ceilings) < 40 * 60
