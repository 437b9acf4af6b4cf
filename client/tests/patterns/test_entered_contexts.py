"""Entries left in different contexts are harmless and bounded."""

import contextvars

import pytest

from switchgear.patterns import entered_contexts
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters


def count_entries():
    entry, count = entered_contexts._last.get(), 0
    while entry is not None:
        entry, count = entry.previous, count + 1
    return count


def of_breaker():
    return Breaker("d", BreakerParameters())


def of_bulkhead():
    return Bulkhead("d", BulkheadParameters(limit=5))


@pytest.mark.parametrize("make", [of_breaker, of_bulkhead])
def test_left_in_a_copy_of_the_context_it_is_over_here_too(make):
    def run():
        pattern = make()
        for _ in range(100):
            pattern.__enter__()
            contextvars.copy_context().run(pattern.__exit__, None, None, None)
        return count_entries()

    assert contextvars.Context().run(run) <= 1


@pytest.mark.parametrize("make", [of_breaker, of_bulkhead])
def test_left_where_it_is_not_known_it_is_kept_within_bounds(make):
    def run():
        pattern = make()
        for _ in range(3000):
            pattern.__enter__()
            contextvars.Context().run(pattern.__exit__, None, None, None)
        return count_entries()

    assert contextvars.Context().run(run) <= entered_contexts.MAX_DEPTH


def test_nested_entries_are_popped_from_the_inside():
    one, two = object(), object()

    def run():
        entered_contexts.push_entry(one, 1, None)
        entered_contexts.push_entry(two, 2, None)
        entered_contexts.push_entry(one, 3, None)
        contextvars.copy_context().run(entered_contexts.pop_entry, two)
        return (
            entered_contexts.pop_entry(one),
            entered_contexts.pop_entry(two),
            entered_contexts.pop_entry(one),
            entered_contexts.pop_entry(one),
            count_entries(),
        )

    assert contextvars.Context().run(run) == ((3, None), None, (1, None), None, 0)
