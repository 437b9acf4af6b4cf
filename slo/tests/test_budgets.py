"""Budget spent by a span, and regained by excluding one."""

from itertools import pairwise

import pytest
from django.utils import timezone

from slo.arithmetic.minutes import due_minute, end_of, last_ended
from slo.evaluation import budgets
from slo.evaluation.budgets import SpentBudget
from slo.models import CounterMinute, Sli
from slo.objectives import exclusions

from . import factories
from .factories import OPERATOR, REASON

pytestmark = pytest.mark.django_db
A_DAY = 1440


def write_counts(slo, end, bad):
    """Store a day and a half of a period of 7 days: 100 events a minute, some bad in some minutes.

    Minutes are given by how long before the end they are.
    """
    first = end - A_DAY * 3 // 2
    rows, good, total = [(first, 0, 0)], 0, 0
    for minute in range(first + 1, end + 1):
        total += 100
        good += 100 - bad.get(end - minute, 0)
        rows.append((minute, good, total))
    factories.counted(slo, rows)


def expected_spent(slo, edges, excluded=()):
    """Compute the same shares from each minute by itself."""
    rows = list(CounterMinute.objects.filter(sli__slo=slo).order_by("minute"))
    alone = {
        later.minute: (later.total - earlier.total, later.total - later.good)
        for earlier, later in pairwise(rows)
    }
    was_bad = {minute: bad for minute, (_, bad) in alone.items()}
    for earlier, later in pairwise(sorted(was_bad)):
        alone[later] = (alone[later][0], was_bad[later] - was_bad[earlier])
    alone = {m: one for m, one in alone.items() if not any(a < m <= b for a, b in excluded)}
    period = slo.window_days * A_DAY
    total = sum(all_ for m, (all_, _) in alone.items() if edges[-1] - period < m <= edges[-1])
    allowed = total * (1 - float(slo.target))
    return [
        sum(bad for m, (_, bad) in alone.items() if start < m <= end) / allowed
        for start, end in pairwise(edges)
    ]


def test_each_part_has_spent_its_share_of_the_whole_period():
    slo, end = factories.slo(target=0.99, window_days=7), 29_700_000
    write_counts(slo, end, {30: 40, 200: 25, 1500: 60})
    edges = [end - 400, end - 100, end]

    spent = budgets.load_spent([slo], edges)[slo.pk]

    assert spent.parts == pytest.approx(expected_spent(slo, edges), abs=1e-6)
    assert spent.in_all == pytest.approx(sum(expected_spent(slo, edges)), abs=2e-6)
    assert spent.remaining_ratio == pytest.approx(
        1 - (40 + 25 + 60) / (2160 * 100 * 0.01), abs=1e-3
    )


def test_what_does_not_count_is_in_no_part():
    slo = factories.slo(target=0.99, window_days=7)
    end = last_ended(timezone.now())
    write_counts(slo, end, {30: 40, 200: 25})
    span = (end - 205, end - 195)
    edges = [end - 400, end - 100, end]
    exclusions.add_exclusion(
        name=slo.name,
        starts_at=end_of(span[0]),
        ends_at=end_of(span[1]),
        reason=REASON,
        actor=OPERATOR,
        now=end_of(end),
    )

    spent = budgets.load_spent([slo], edges)[slo.pk]

    assert spent.parts == pytest.approx(expected_spent(slo, edges, [span]), abs=1e-6)
    assert spent.parts[0] == 0


def test_period_that_is_shorter_than_the_span_is_what_shares_are_of():
    slo, end = factories.slo(target=0.99, window_days=1), 29_700_000
    write_counts(slo, end, {30: 40, 2000: 60})
    edges = [end - 2100, end - 1900, end]

    spent = budgets.load_spent([slo], edges)[slo.pk]

    assert spent.parts == pytest.approx(expected_spent(slo, edges), abs=1e-6)


def test_nothing_counted_is_nothing_known():
    slo = factories.slo()

    assert budgets.load_spent([slo], [1000, 2000]) == {}
    Sli.objects.filter(slo=slo).update(first=1500, last=1500)
    assert budgets.load_spent([slo], [1000, 2000])[slo.pk] == SpentBudget(None, (None,))


def test_outlook_is_what_adding_the_exclusion_then_does():
    slo = factories.slo(target=0.99, window_days=7)
    now = timezone.now()
    end = due_minute(now)
    write_counts(slo, end, {30: 40, 200: 25})
    exclusions.add_exclusion(
        name=slo.name, starts_at=end_of(end - 31), ends_at=end_of(end - 28), reason=REASON,
        actor=OPERATOR, now=now,
    )  # fmt: skip
    span = (end - 210, end - 25)

    effect = budgets.estimate_exclusion(slo, span, end)

    outcome = exclusions.add_exclusion(
        name=slo.name, starts_at=end_of(span[0]), ends_at=end_of(span[1]), reason=REASON,
        actor=OPERATOR, now=end_of(end),
    )  # fmt: skip
    # A minute may have ended between the two looks.
    assert effect.before == pytest.approx(outcome.before["remaining_ratio"], abs=1e-4)
    assert effect.after == pytest.approx(outcome.after["remaining_ratio"], abs=1e-4)
    assert effect.before < effect.after
    # What was left out before is not given back once more.
    assert (effect.bad, effect.total) == (25, (185 - 3) * 100)


def test_span_to_come_changes_nothing_yet():
    slo, end = factories.slo(target=0.99, window_days=7), 29_700_000
    write_counts(slo, end, {30: 40})

    effect = budgets.estimate_exclusion(slo, (end + 10, end + 60), end)

    assert effect.before == effect.after
    assert effect.total == 0
