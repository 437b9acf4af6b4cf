"""Two fallbacks as one: what the second has is asked after what the first has."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from switchgear.patterns.caches import MISSING
from switchgear.patterns.course import Course, Tally
from switchgear.patterns.hops import Hop


def one_after_other(first: Course, second: Course) -> Course:
    """The hops of each are for the errors that it is for. What is kept, and what is given in the
    end, are the second's, if it has them."""
    of_first = tuple(_of(first, hop) for hop in first.hops)
    of_second = tuple(_of(second, hop) for hop in second.hops)
    keeps = first if second.cache is None else second

    def on_hop(before: Hop | None, after: Hop, error: BaseException) -> None:
        told = (first if after in of_first else second).on_hop
        if told is not None:
            told(before, after, error)

    def is_good(value: Any) -> bool:
        return all(one.is_good is None or one.is_good(value) for one in (first, second))

    return replace(
        first,
        hops=of_first + of_second,
        cache=keeps.cache,
        cache_key=keeps.cache_key,
        default=first.default if second.default is MISSING else second.default,
        on=lambda error: first.asks(error) or second.asks(error),
        on_switch=first.on_switch or second.on_switch,
        is_good=is_good if first.is_good or second.is_good else None,
        on_hop=on_hop,
        exhausted=first.exhausted or second.exhausted,
        tally=Tally(),
        has_complained=False,
    )


def _of(course: Course, hop: Hop) -> Hop:
    own: Callable[[BaseException], bool] | None = hop.suits

    def suits(error: BaseException) -> bool:
        return course.asks(error) and (own is None or own(error))

    return replace(hop, suits=suits)
