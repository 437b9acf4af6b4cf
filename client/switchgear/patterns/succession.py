"""Two fallbacks as one: what the second has is asked after what the first has."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from switchgear.patterns.fallback_plan import AnswerCounts, FallbackPlan
from switchgear.patterns.fallback_targets import FallbackTarget


def chain_plans(first: FallbackPlan, second: FallbackPlan) -> FallbackPlan:
    """Two fallbacks in succession. The targets of each are for the errors that it covers. The cache
    and the default are those of the second, if it has them."""
    of_first = tuple(_limit_to_plan(first, target) for target in first.targets)
    of_second = tuple(_limit_to_plan(second, target) for target in second.targets)
    keeps = first if second.cache is None else second

    def on_target(
        before: FallbackTarget | None, after: FallbackTarget, error: BaseException
    ) -> None:
        hook = (first if after in of_first else second).on_target
        if hook is not None:
            hook(before, after, error)

    def is_good(value: Any) -> bool:
        return all(one.is_good is None or one.is_good(value) for one in (first, second))

    return replace(
        first,
        targets=of_first + of_second,
        cache=keeps.cache,
        cache_key=keeps.cache_key,
        make_default=second.make_default or first.make_default,
        on=lambda error: first.selects(error) or second.selects(error),
        on_switch=first.on_switch or second.on_switch,
        is_good=is_good if first.is_good or second.is_good else None,
        on_target=on_target,
        exhausted=first.exhausted or second.exhausted,
        answer_counts=AnswerCounts(),
        has_warned=False,
    )


def _limit_to_plan(plan: FallbackPlan, target: FallbackTarget) -> FallbackTarget:
    own: Callable[[BaseException], bool] | None = target.suits

    def suits(error: BaseException) -> bool:
        return plan.selects(error) and (own is None or own(error))

    return replace(target, suits=suits)
