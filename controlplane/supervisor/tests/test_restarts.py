"""Restart delays."""

from controlplane.supervisor.child import Restarts


def test_delays_double_up_to_five_seconds() -> None:
    restarts = Restarts()

    delays = [restarts.delay_seconds(lived_seconds=3) for _ in range(9)]

    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


def test_the_fifth_quick_death_in_a_row_counts_as_failing() -> None:
    restarts = Restarts()

    failing = []
    for _ in range(6):
        restarts.delay_seconds(lived_seconds=1.99)
        failing.append(restarts.is_failing)

    assert failing == [False, False, False, False, True, True]


def test_a_life_of_two_seconds_forgives_the_quick_deaths_before() -> None:
    restarts = Restarts()
    for _ in range(4):
        restarts.delay_seconds(lived_seconds=0.1)

    restarts.delay_seconds(lived_seconds=2)

    assert not restarts.is_failing
    assert [restarts.delay_seconds(0.1) for _ in range(5)][-2:] == [5.0, 5.0]
    assert restarts.is_failing


def test_a_steady_life_starts_the_delays_over() -> None:
    restarts = Restarts()
    for _ in range(6):
        restarts.delay_seconds(lived_seconds=3)

    assert restarts.delay_seconds(lived_seconds=30) == 0.1


def test_thousands_of_deaths_keep_the_longest_delay() -> None:
    restarts = Restarts()

    delays = [restarts.delay_seconds(lived_seconds=5) for _ in range(3_000)]

    assert delays[-1] == 5.0
