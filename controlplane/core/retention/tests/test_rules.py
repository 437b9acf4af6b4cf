"""Every table has a rule, or a reason to last; and what is chosen has bounds."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from controlplane.core import ticks
from controlplane.core.checks import check_retention_periods
from controlplane.core.retention.rules import (
    PERMANENT_TABLES,
    RETENTION_RULES,
    models_without_rule,
    ruled_models,
)

DAY = timedelta(days=1)


def test_every_model_has_a_rule_or_lasts_for_a_reason():
    assert models_without_rule() == []


def test_a_model_without_a_rule_is_named(monkeypatch):
    assert PERMANENT_TABLES
    monkeypatch.delitem(PERMANENT_TABLES._items, "switches.Episode")

    assert models_without_rule() == ["switches.Episode"]


def test_no_model_has_both_and_each_exists():
    lasting = set(PERMANENT_TABLES)
    assert not lasting & ruled_models()
    for label in lasting | ruled_models():
        apps.get_model(label)


def test_each_rule_names_a_tick_that_runs():
    for rule in RETENTION_RULES.values():
        assert rule.tick in ticks.list_ticks(), rule.name


def test_proof_is_never_ruled():
    proof = {
        "core.AuditEntry",
        "core.Approval",
        "switches.Episode",
        "switches.WeeklyReport",
        "breakers.Override",
    }
    assert proof <= set(PERMANENT_TABLES)


def test_chosen_days_count_within_the_bounds_only(settings):
    messages, keys = RETENTION_RULES["messages"], RETENTION_RULES["idempotency-keys"]

    settings.KEPT_DAYS = {"messages": 60, "idempotency-keys": 60}

    assert messages.effective_period == 60 * DAY
    assert keys.effective_period == DAY
    settings.KEPT_DAYS = {"messages": 1}
    assert messages.effective_period == 8 * DAY


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"messages": 7}, "messages must be from 8 to 400 days, not 7."),
        ({"audit": 7}, "audit is not a retention rule"),
        ({"idempotency-keys": 2}, "idempotency-keys can't be changed"),
    ],
)
def test_wrong_days_are_an_error_of_check_and_of_the_command(settings, chosen, message):
    settings.KEPT_DAYS = chosen

    (error,) = check_retention_periods()

    assert message in error.msg
    with pytest.raises(CommandError, match="KEPT_DAYS"):
        call_command("retention")


def test_right_days_are_none(settings):
    settings.KEPT_DAYS = {"messages": 8}

    assert check_retention_periods() == []
