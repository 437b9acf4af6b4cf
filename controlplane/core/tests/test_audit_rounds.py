"""Continuous verification of the trail: failures are detected, notified, and stay reported."""

from datetime import timedelta

import pytest

from controlplane.core import metrics
from controlplane.core.audit import attention, chain, services
from controlplane.core.audit.metrics import collect_audit_metrics
from controlplane.core.audit.models import AuditRound
from controlplane.core.clock import db_now
from controlplane.core.tests.test_audit import as_owner_without_trigger, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return db_now()


def get_round():
    return AuditRound.objects.get()


def read_metrics(now):
    """Return the verification metrics as {metric: value}."""
    found = {}
    for family in collect_audit_metrics(now):
        (sample,) = family.samples
        found[sample.name] = sample.value
    return found


def test_a_round_goes_on_where_the_last_turn_ended_and_begins_again(now):
    write(5)

    assert [services.verify_next_rows(now, most=2) for _ in range(2)] == [2, 2]
    assert (get_round().reached_id, get_round().whole_at) == (4, None)

    assert services.verify_next_rows(now, most=2) == 1
    assert (get_round().reached_id, get_round().whole_id, get_round().whole_at) == (0, 5, now)
    assert services.verify_next_rows(now, most=2) == 2


def test_an_empty_trail_is_whole(now):
    assert services.verify_next_rows(now) == 0
    assert read_metrics(now) == {
        "switchgear_audit_intact": 1,
        "switchgear_audit_verified_age_seconds": 0,
    }


def test_age_counts_from_the_last_whole_round_or_else_from_the_first_turn(now):
    write(3)
    services.verify_next_rows(now, most=2)
    assert read_metrics(now + timedelta(hours=1))["switchgear_audit_verified_age_seconds"] == 3600

    services.verify_next_rows(now + timedelta(minutes=59), most=2)

    assert read_metrics(now + timedelta(hours=1))["switchgear_audit_verified_age_seconds"] == 60


def test_a_changed_row_is_told_once_and_stays_said_until_it_holds(now, caplog):
    write(4)
    reason = "UPDATE core_auditentry SET reason = %s WHERE id = 3"
    as_owner_without_trigger(reason, "nothing happened")

    services.verify_next_rows(now, most=2)
    services.verify_next_rows(now, most=2)
    services.verify_next_rows(now + timedelta(minutes=1), most=2)

    (waiting,) = attention.list_broken_trail(now)
    assert (waiting.severity, waiting.since) == ("critical", now)
    assert "row 3" in waiting.detail
    assert read_metrics(now)["switchgear_audit_intact"] == 0
    assert [record.levelname for record in caplog.records] == ["ERROR"]

    as_owner_without_trigger(reason, "because it had to be done")
    services.verify_next_rows(now, most=2)

    assert attention.list_broken_trail(now) == []
    assert read_metrics(now)["switchgear_audit_intact"] == 1


@pytest.mark.parametrize("most", [2, 100])
def test_a_trail_that_was_cut_at_its_end_is_noticed(now, most):
    write(5)
    turns(now, most, 3)
    assert get_round().whole_id == 5

    as_owner_without_trigger("DELETE FROM core_auditentry WHERE id > 3")
    turns(now, most, 3)

    assert "row 5: an anchored row is missing" in get_round().problem


def test_a_trail_that_was_rewritten_and_rehashed_is_noticed(now):
    write(3)
    services.verify_next_rows(now)
    rows = list(services.read_trail())
    rows[1]["reason"] = "nothing happened"
    for before, row in zip([None, *rows], rows, strict=False):
        row["previous_hash"] = before["hash"] if before else chain.GENESIS
        row["hash"] = chain.hash_row(row)
        as_owner_without_trigger(
            "UPDATE core_auditentry SET reason = %s, previous_hash = %s, hash = %s WHERE id = %s",
            row["reason"], row["previous_hash"], row["hash"], row["id"],
        )  # fmt: skip
    assert chain.verify(services.read_trail()).intact
    assert not services.verify().intact

    services.verify_next_rows(now)

    assert "row 3: it does not match its anchor" in get_round().problem


@pytest.mark.django_db(transaction=True)  # The scrape asks on a connection of its own.
def test_metrics_have_it():
    services.verify_next_rows(db_now())

    assert b"switchgear_audit_intact 1.0" in metrics.exposition("")[0]


def turns(now, most, count):
    for _ in range(count):
        services.verify_next_rows(now, most=most)
