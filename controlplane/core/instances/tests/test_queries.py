"""Queries about instances, on real rows: presence, delays, and checks."""

import math
import random
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.instances import exports, queries, rates
from controlplane.core.instances.queries import CheckingInstances, Delays, Head, PublishedChange
from controlplane.core.models import Acknowledgement, Instance

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EPOCH, OTHER = uuid4(), uuid4()
HEAD = Head(EPOCH, 7)


@pytest.fixture(autouse=True)
def published(db: None) -> None:
    """Version 99 is the newest that there is."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE switches_publication SET epoch = %s, version = 99", [EPOCH])


def ms(number: float) -> timedelta:
    return timedelta(milliseconds=number)


def create_instances(*names: str, since_ms: float = -60_000, **fields: object) -> None:
    """Create instances first heard from `since_ms` after the change."""
    Instance.objects.bulk_create(
        Instance(id=name, service="a", first_heard_at=NOW + ms(since_ms), **fields)
        for name in names
    )


def multiply(instance: Instance, count: int) -> None:
    """Add so many instances that differ from the saved one by their number alone: `a/00000` on."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO core_instance
            SELECT copied.* FROM core_instance one, generate_series(0, %s - 1) n,
            LATERAL jsonb_populate_record(
                one, jsonb_build_object('id', left(one.id, 2) || lpad(n::text, 5, '0'))
            ) copied WHERE one.id = %s
            """,
            [count, instance.pk],
        )
    instance.delete()


def acknowledge(instance: str, version: int, after_ms: float, epoch: object = EPOCH) -> None:
    if not Instance.objects.filter(id=instance).exists():
        create_instances(instance)
    Acknowledgement.objects.create(
        epoch=epoch, version=version, instance=instance, acknowledged_at=NOW + ms(after_ms)
    )


def delays_of(version: int) -> Delays:
    return queries.load_delays(EPOCH, [PublishedChange("segment:a", version, NOW)])["segment:a"]


def nearest_rank(values: list[int], part: float) -> int:
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def build_instance(name: str, version: int | None, ago: float = 0, epoch: UUID = EPOCH) -> Instance:
    return Instance(
        id=name,
        service="a",
        heard_at=NOW - timedelta(seconds=ago),
        applied_epoch=None if version is None else epoch,
        applied_version=version,
    )


def test_those_of_the_last_half_minute_and_of_five_minutes_are_counted_apart() -> None:
    for number, ago in enumerate((0, 29.9, 30, 30.1, 299, 300, 300.1, 9_999)):
        build_instance(f"a/{number}", 7, ago).save()
    Instance.objects.create(id="token:x", service="token:x")

    there, silent = queries.count_versions(HEAD, NOW)

    assert (there.total, silent.total) == (3, 3)


def test_number_of_those_that_lag_has_no_limit_and_the_named_ones_have() -> None:
    for one, count in (
        (build_instance("a/one", 7), 10_050),
        (build_instance("z/one", 5), 30),
        (build_instance("s/one", 5, 60), 10_020),
    ):
        one.save()
        multiply(one, count)

    there, silent = queries.count_versions(HEAD, NOW)
    named = queries.list_lagging_instances(7, HEAD, NOW, most=20)

    assert (there.total, there.below(7), silent.below(7)) == (10_080, 30, 10_020)
    assert [one.id for one in named] == [f"z/{number:05}" for number in range(20)]
    assert len(queries.list_silent_instances(7, HEAD, NOW, most=4)) == 4


@settings(max_examples=25)
@given(
    st.integers(0, 10),
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 10),
            st.sampled_from([EPOCH, OTHER]),
            st.sampled_from([0.0, 31.0]),
        ),
        max_size=40,
    ),
)
def test_counts_and_names_agree_with_asking_each_instance(
    version: int, instances: list[tuple[int | None, UUID, float]]
) -> None:
    Instance.objects.all().delete()
    for number, (applied, epoch, ago) in enumerate(instances):
        build_instance(f"a/{number:02}", applied, ago, epoch).save()

    there, silent = queries.count_versions(HEAD, NOW)

    for counted, named, ago in (
        (there, queries.list_lagging_instances(version, HEAD, NOW, most=99), 0),
        (silent, queries.list_silent_instances(version, HEAD, NOW, most=99), 31),
    ):
        lagging = {
            f"a/{number:02}"
            for number, (applied, epoch, when) in enumerate(instances)
            if when == ago
            and not (applied is not None and epoch == EPOCH and version <= applied <= HEAD.version)
        }
        assert counted.total == sum(when == ago for _, _, when in instances)
        assert counted.below(version) == len(lagging)
        assert {one.id for one in named} == lagging


def test_many_delays_are_the_percentiles_of_an_independent_computation() -> None:
    draw = random.Random(7)
    delays = [round(draw.lognormvariate(4, 1)) for _ in range(357)]
    for number, delay in enumerate(delays):
        acknowledge(f"a/{number}", 5, delay)

    found = delays_of(5)

    assert found == Delays(nearest_rank(delays, 0.5), nearest_rank(delays, 0.99), 357, 0)


def test_an_instance_that_skips_the_version_counts_by_the_next() -> None:
    acknowledge("a/1", 9, 250)
    acknowledge("a/1", 10, 300)
    acknowledge("a/2", 7, 5)

    assert delays_of(8) == Delays(250, 250, 1, 0)


def test_another_epoch_counts_for_nothing() -> None:
    acknowledge("a/1", 9, 250, epoch=uuid4())

    assert delays_of(8) == Delays(None, None, 0, 0)


def test_an_acknowledgement_after_ten_minutes_counts_for_nothing() -> None:
    acknowledge("a/1", 8, 600_000)
    acknowledge("a/2", 8, 600_001)

    assert delays_of(8) == Delays(600_000, 600_000, 1, 0)


def test_an_acknowledgement_that_seems_early_is_a_delay_of_nothing() -> None:
    acknowledge("a/1", 8, -40)
    acknowledge("a/2", 10**17, -86_400_000)

    assert delays_of(8) == Delays(0, 0, 1, 0)


def test_an_instance_started_after_the_change_was_never_told_of_it() -> None:
    create_instances("a/new", "a/restarted", started_at=NOW + ms(290_000))
    acknowledge("a/new", 8, 300_000)
    acknowledge("a/restarted", 8, 30)

    assert delays_of(8) == Delays(30, 30, 1, 0)


@pytest.mark.parametrize(("since_ms", "measured"), [(-1, 1), (0, 0), (12_000, 0)])
def test_only_who_was_known_before_the_change_is_measured(since_ms: float, measured: int) -> None:
    create_instances("a/poller", since_ms=since_ms)
    acknowledge("a/poller", 8, 12_731)

    assert delays_of(8).measured == measured


def test_one_that_was_never_heard_of_or_is_forgotten_is_not_measured() -> None:
    Instance.objects.create(id="a/asker", service="a")
    acknowledge("a/asker", 8, 30)
    acknowledge("a/gone", 8, 30)
    Instance.objects.filter(id="a/gone").delete()

    assert delays_of(8) == Delays(None, None, 0, 0)


def test_an_acknowledgement_of_what_was_never_published_counts_for_nothing() -> None:
    acknowledge("a/liar", 100, 5)
    acknowledge("a/honest", 99, 70)

    assert delays_of(8) == Delays(70, 70, 1, 0)


def test_no_changes_are_no_question() -> None:
    assert queries.load_delays(EPOCH, []) == {}


def entry(calls: int, blocked: int, ago: timedelta = timedelta(0)) -> dict[str, object]:
    return rates.add_calls(None, calls - blocked, blocked, NOW - ago)


def test_callers_are_the_busiest_first_and_all_are_counted() -> None:
    for name, calls in (("a/1", 60), ("a/2", 600), ("b/1", 6)):
        Instance.objects.create(
            id=name, service=name[0], checks={"segment:x": entry(calls, calls // 2)}
        )
    Instance.objects.create(id="c/1", service="c", checks={"segment:y": entry(60, 0)})

    found, total = queries.list_callers("segment:x", NOW, most=2)

    assert [one.id for one in found] == ["a/2", "a/1"]
    assert total == 3
    assert (found[0].calls_per_second, found[0].blocked_per_second) == (10, 5)
    assert (found[0].service, found[0].switch, found[0].last_seen) == ("a", "segment:x", NOW)


def test_callers_of_any_switch_are_one_row_per_instance() -> None:
    checks = {"segment:x": entry(60, 60), "feature:y": entry(120, 0, timedelta(seconds=1))}
    Instance.objects.create(id="a/1", service="a", checks=checks)
    Instance.objects.create(id="a/2", service="a")

    found, total = queries.list_callers(None, NOW)

    assert total == 1
    assert found[0].calls_per_second == 3
    assert found[0].blocked_per_second == 1
    assert found[0].last_seen == NOW


def test_callers_silent_for_longer_than_asked_are_left_out() -> None:
    Instance.objects.create(
        id="a/1", service="a", checks={"segment:x": entry(60, 0, timedelta(minutes=61))}
    )

    assert queries.list_callers("segment:x", NOW) == ([], 0)
    found, total = queries.list_callers("segment:x", NOW, within=timedelta(hours=2))
    assert (total, found[0].calls_per_second) == (1, 0)


def test_callers_are_counted_by_whether_they_report_stopped_or_fell_silent() -> None:
    minute = timedelta(minutes=1)
    for name, heard_at, stopped_at in (
        ("a/reports", NOW, None),
        ("a/reports-again", NOW, NOW - minute),
        ("a/stopped", NOW, NOW),
        ("a/silent", NOW - minute, None),
        ("token:ci", None, None),
    ):
        Instance.objects.create(
            id=name, service="a", checks={"segment:x": entry(60, 0, minute)},
            heard_at=heard_at, stopped_at=stopped_at,
        )  # fmt: skip
    Instance.objects.create(
        id="a/other", service="a", heard_at=NOW, checks={"segment:y": entry(60, 0)}
    )

    def count(since: datetime) -> CheckingInstances:
        return queries.count_checking_instances("segment:x", since, NOW)

    assert count(NOW - minute) == CheckingInstances(total=5, reporting=2, stopped=1)
    assert count(NOW - minute / 2) == CheckingInstances(total=0, reporting=0, stopped=0)
    stopped = {one.id for one in queries.list_callers("segment:x", NOW)[0] if one.has_stopped}
    assert stopped == {"a/stopped"}
    assert {one.id for one in queries.list_callers(None, NOW)[0] if one.has_stopped} == stopped


@pytest.mark.parametrize("switch", ["segment:none", "x' OR 1=1 --", "%s", "segment:?", ""])
def test_a_switch_that_nobody_checks_has_no_callers(switch: str) -> None:
    Instance.objects.create(id="a/1", service="a", checks={"segment:x": entry(60, 0)})

    assert queries.list_callers(switch, NOW) == ([], 0)


@pytest.mark.slow
def test_ten_thousand_instances_are_answered_in_reasonable_time() -> None:
    checks = {f"segment:s{number}": entry(60, 6) for number in range(10)}
    create_instances("a/one", heard_at=NOW, checks=checks)
    multiply(Instance.objects.get(), 10_000)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_acknowledgement (epoch, version, instance, acknowledged_at)"
            " SELECT %s, v, 'a/' || lpad(n::text, 5, '0'), %s + (v + n) * interval '1 ms'"
            " FROM generate_series(5, 7) v, generate_series(0, 9999) n",
            [EPOCH, NOW],
        )
    changes = [PublishedChange(f"segment:s{number}", 5, NOW) for number in range(20)]
    began = time.monotonic()

    there, _ = queries.count_versions(HEAD, NOW)
    one, one_total = queries.list_callers("segment:s3", NOW)
    any_, any_total = queries.list_callers(None, NOW)
    delays = queries.load_delays(EPOCH, changes)

    took = time.monotonic() - began
    print(f"10,000 instances: {took:.2f} s for counts, callers, all callers and 20 changes")
    assert there.total == one_total == any_total == 10_000
    assert len(one) == len(any_) == 200
    assert delays["segment:s7"] == Delays(5 + 4_999, 5 + 9_899, 10_000, 0)
    assert took < 20


@pytest.mark.parametrize(
    ("another", "is_stopped"),
    [
        (None, True),
        ({"heard_at": 5, "stopped_at": 5}, True),
        ({"heard_at": 400}, True),  # Silent for five minutes when the others stopped.
        ({"heard_at": 300}, False),
        ({"heard_at": 0}, False),
        ({"heard_at": 10, "stopped_at": 20}, False),  # Polls again.
        ({"heard_at": 0, "service": "b"}, True),
        ({"heard_at": None}, True),
    ],
)
def test_a_service_has_stopped_if_all_its_instances_did(another, is_stopped) -> None:
    """Numbers are seconds before the time of the query, or a minute earlier."""

    def instance(id: str, service: str = "a", **ago: int | None) -> None:
        times = {
            name: None if seconds is None else NOW - timedelta(seconds=60 + seconds)
            for name, seconds in ago.items()
        }
        Instance.objects.create(id=id, service=service, **times)

    instance("a/1", heard_at=10, stopped_at=10)
    if another is not None:
        instance("a/2", **another)

    minute = timedelta(minutes=1)
    assert exports.find_stopped_services(["a", "c"], NOW - minute) == (
        {"a"} if is_stopped else set()
    )
    assert exports.find_stopped_services(["a"], NOW - 2 * minute) == set()
    assert exports.find_stopped_services([], NOW) == set()
