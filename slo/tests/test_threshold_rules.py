"""Threshold rules: validation, wording, and the built-in ones."""

import pytest
from django.apps import apps
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import InvalidInput
from controlplane.core.threshold_metrics import THRESHOLD_METRICS
from slo.models import ThresholdRule
from slo.thresholds import builtin_rules, rules

RATE = {"metric": "timeout_rate", "value": 0.02, "severity": "warning"}


def validation_errors(name="core-timeouts", **fields):
    with pytest.raises(InvalidInput) as error:
        rules.validate(name, {**RATE, **fields})
    return error.value.errors


def test_what_is_left_out_has_its_default():
    assert rules.validate("core-timeouts", RATE) == {
        "title": "",
        "metric": "timeout_rate",
        "statistic": "rate",
        "window": "5m",
        "comparison": ">",
        "value": 0.02,
        "min_events": 1,
        "severity": "warning",
        "enabled": True,
        "runbook_url": "",
    }


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("metric", "timeouts", "Must be one of breaker_open, concurrency"),
        ("metric", "timeout_rate:oracle", "Must be one of"),
        ("metric", "latency_ms:", "Must be one of"),
        ("statistic", "p95", "Must be one of rate."),
        ("window", "90s", "Must be of whole minutes"),
        ("window", "30d", "Must be from 1m to 3d."),
        ("window", "soon", "Use a whole number and a unit"),
        ("comparison", "!=", "Must be one of >, >=, <, <=."),
        ("value", "2", "Must be a number, without quotes."),
        ("value", True, "Must be a number, without quotes."),
        ("value", float("nan"), "Must be a number, without quotes."),
        ("value", None, "Enter the value to compare with."),
        ("value", 2, "Must be a share from 0 to 1. 2 % is 0.02."),
        ("value", 1, "would never fire"),
        ("min_events", -1, "Must be from 0"),
        ("min_events", 2.5, "Must be a whole number"),
        ("severity", "page", "Must be one of critical, warning, info."),
        ("severity", None, "Must be one of critical, warning, info."),
        ("enabled", "no", "Must be true or false"),
        ("runbook_url", "javascript:alert(1)", "Must be a URL"),
        ("tilte", "x", "did you mean title?"),
    ],
)
def test_what_makes_no_rule_is_refused_by_name(field, value, said):
    errors = validation_errors(**{field: value})

    assert list(errors) == [field]
    assert said in " ".join(errors[field])


@pytest.mark.parametrize("name", ["", "new", "a b", "-x", "x" * 101, "x/y", "é"])
def test_a_name_that_fits_no_address_is_refused(name):
    assert list(validation_errors(name)) == ["name"]


def test_everything_wrong_is_told_at_once():
    assert set(validation_errors(severity="bad", value=-1, window="0m")) == {
        "severity",
        "value",
        "window",
    }


def test_what_is_so_now_has_no_window():
    errors = validation_errors(metric="breaker_open", value=0, window="5m")

    assert errors == {"window": ["breaker_open is a current state; leave the window out."]}


def test_a_percentile_has_to_be_chosen_and_may_be_of_one_histogram():
    latency = {"metric": "latency_ms:e2e", "value": 5000}

    assert "statistic" in validation_errors(**latency)
    assert rules.validate("slow", {**RATE, **latency, "statistic": "p99"})["statistic"] == "p99"
    assert "comparison" in validation_errors(**latency, statistic="p99", comparison=">=")


@given(st.floats(0, 1, exclude_max=True), st.sampled_from(["timeout_rate", "concurrency"]))
def test_what_was_checked_is_said_by_the_row_and_may_be_checked_again(value, metric):
    window = {} if metric == "concurrency" else {"window": "60m"}
    document = rules.validate("core", {**RATE, **window, "metric": metric, "value": value})
    row = ThresholdRule(name="core")

    rules.apply_document(row, document)

    assert rules.to_document(row) == document
    assert rules.validate("core", rules.to_document(row)) == document


@pytest.mark.django_db
def test_the_seven_rules_of_the_beginning_are_there_and_read_well():
    by_name = {one.name: one for one in ThresholdRule.objects.filter(built_in=True)}

    said = {name: (rules.describe_rule(one), one.severity) for name, one in by_name.items()}
    slow = "p95 of latency of e2e above 5,000 ms in 5 min, if at least 20 events"
    assert said == {
        "e2e_latency": (slow, "warning"),
        "timeout_rate": ("Timeout rate above 1 % in 5 min, if at least 20 events", "warning"),
        "retry_rate": ("Retry rate above 10 % in 5 min, if at least 20 events", "info"),
        "breaker_open": ("Open breakers above 0", "warning"),
        "switch_engaged": ("Engaged switches above 0", "critical"),
        "fallback_rate": ("Fallback rate above 5 % in 5 min, if at least 20 events", "warning"),
        "concurrency": ("Concurrency above 80 %", "info"),
    }
    assert all(one.is_enabled for one in by_name.values())


@pytest.mark.django_db
def test_each_of_the_beginning_is_a_rule_that_people_could_have_made():
    for one in ThresholdRule.objects.filter(built_in=True):
        assert rules.validate(one.name, rules.to_document(one)) == rules.to_document(one)


@pytest.mark.django_db
def test_installing_again_changes_nothing_that_people_changed():
    ThresholdRule.objects.filter(name="timeout_rate").update(value=0.5)

    builtin_rules.install_rules(apps, ThresholdRule.objects.first().changed_at)

    assert ThresholdRule.objects.get(name="timeout_rate").value == 0.5
    assert ThresholdRule.objects.count() == 7


def test_every_measure_of_the_table_is_offered_by_its_app():
    assert set(THRESHOLD_METRICS) >= {
        "latency_ms",
        "timeout_rate",
        "retry_rate",
        "breaker_open",
        "switch_engaged",
        "fallback_rate",
        "concurrency",
    }
