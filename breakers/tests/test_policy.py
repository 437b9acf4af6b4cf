"""Tests of the validation and completion of policies."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.policies import policy
from breakers.policies.parameters import PARAMETERS, section_parameters
from controlplane.core.errors import InvalidInput
from controlplane.core.scopes import SCOPES


def wrong(fields):
    with pytest.raises(InvalidInput) as caught:
        policy.validate_policy(fields)
    return caught.value.errors


def test_nothing_said_leaves_every_section_null():
    document = policy.validate_policy({})

    assert document["criticality"] == "medium"
    assert document["timeout_ms"] is None
    assert [document[section] for section in policy.SECTIONS] == [None] * len(policy.SECTIONS)


@pytest.mark.parametrize("section", ["breaker", "retry", "fallback"])
def test_empty_section_has_every_default(section):
    found = policy.validate_policy({section: {}})[section]

    expected = {one.name: one.default for one in section_parameters(section)}
    assert {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()} == {
        **expected,
        **({"window_size": 100} if section == "breaker" else {}),
    }


def test_defaults_are_those_of_the_contract():
    breaker = policy.validate_policy({"breaker": {}})["breaker"]

    assert breaker == {
        "window_type": "count",
        "window_size": 100,
        "minimum_calls": 20,
        "failure_rate": 0.5,
        "failure_count": None,
        "consecutive_failures": None,
        "slow_call_seconds": None,
        "slow_call_rate": 1,
        "open_seconds": 30,
        "open_multiplier": 1.5,
        "open_max_seconds": 300,
        "open_jitter": 0.2,
        "half_open_calls": 5,
        "half_open_concurrent": 1,
        "half_open_max_seconds": 0,
    }


def test_other_words_are_kept_beside_what_they_mean():
    section = policy.validate_policy({"breaker": {"failure_threshold": 3, "window_seconds": 30}})[
        "breaker"
    ]

    assert section["failure_threshold"] == section["failure_count"] == 3
    assert section["window_seconds"] == section["window_size"] == 30
    assert section["window_type"] == "time"


def test_complete_document_is_taken_again_unchanged():
    given_ = {
        "breaker": {"failure_threshold": 5, "window_seconds": 60},
        "retry": {"retry_on": ["503", 429, "timeout"]},
        "bulkhead": {"tier": "critical"},
        "fallback": {"chain": ["cache", {"provider": "anthropic"}]},
        "routes": [{"pattern": "/event-logs/**", "timeout_ms": 300_000}],
    }

    once = policy.validate_policy(given_)

    assert policy.validate_policy(once) == once


def test_editable_document_can_be_changed_by_one_parameter():
    document = policy.remove_aliases(policy.validate_policy({"breaker": {"failure_threshold": 5}}))

    changed = policy.validate_policy(
        {**document, "breaker": {**document["breaker"], "failure_count": 7}}
    )

    assert changed["breaker"]["failure_count"] == 7
    assert "failure_threshold" not in changed["breaker"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"breaker": {"window_sise": 3}}, "breaker.window_sise"),
        ({"breaker": {"failure_rate": 1.01}}, "breaker.failure_rate"),
        ({"breaker": {"failure_rate": 0}}, "breaker.failure_rate"),
        ({"breaker": {"open_seconds": "30"}}, "breaker.open_seconds"),
        ({"breaker": {"half_open_calls": True}}, "breaker.half_open_calls"),
        ({"breaker": {"minimum_calls": 2.5}}, "breaker.minimum_calls"),
        ({"breaker": {"open_seconds": float("nan")}}, "breaker.open_seconds"),
        ({"breaker": {"open_seconds": 10**400}}, "breaker.open_seconds"),
        ({"breaker": {"open_seconds": 60, "open_max_seconds": 30}}, "breaker.open_max_seconds"),
        ({"breaker": {"failure_threshold": 3, "failure_count": 4}}, "breaker.failure_count"),
        ({"breaker": {"window_type": "count", "window_seconds": 60}}, "breaker.window_type"),
        ({"breaker": []}, "breaker"),
        ({"retry": {"attempts": 0}}, "retry.attempts"),
        ({"retry": {"base_seconds": 9, "cap_seconds": 5}}, "retry.cap_seconds"),
        ({"retry": {"retry_on": [99]}}, "retry.retry_on.0"),
        ({"retry": {"retry_on": [503], "never": ["503"]}}, "retry.never"),
        ({"bulkhead": {}}, "bulkhead.limit"),
        ({"bulkhead": {"tier": "huge"}}, "bulkhead.tier"),
        ({"bulkhead": {"limit": 5, "mode": "magic"}}, "bulkhead.mode"),
        ({"bulkhead": {"limit": 5, "min_limit": 6}}, "bulkhead.min_limit"),
        ({"bulkhead": {"limit": 5, "max_limit": 4}}, "bulkhead.max_limit"),
        ({"fallback": {"mode": "pray"}}, "fallback.mode"),
        ({"budget": {}}, "budget.tokens"),
        ({"budget": {"window_seconds": 60}}, "budget.tokens"),
        ({"budget": {"tokens": 0}}, "budget.tokens"),
        ({"budget": {"tokens": 1.5}}, "budget.tokens"),
        ({"budget": {"per_key_tokens": 10**13}}, "budget.per_key_tokens"),
        ({"budget": {"tokens": 1, "window_seconds": 0.5}}, "budget.window_seconds"),
        ({"budget": {"tokens": 1, "max_tokens": 1}}, "budget.max_tokens"),
        ({"fallback": {"chain": [[]]}}, "fallback.chain.0"),
        ({"routes": [{"pattern": "x", "timeout_ms": 1}]}, "routes.0.pattern"),
        ({"routes": [{"pattern": "/x"}]}, "routes.0.timeout_ms"),
        ({"routes": {}}, "routes"),
        ({"criticality": "huge"}, "criticality"),
        ({"timeout_ms": 0}, "timeout_ms"),
        ({"runbook_url": "javascript:alert(1)"}, "runbook_url"),
        ({"notes": "a\x00b"}, "notes"),
        ({"timeout": 5}, "timeout"),
    ],
)
def test_what_is_wrong_is_named(fields, path):
    assert list(wrong(fields)) == [path]


def test_all_that_is_wrong_is_told_at_once():
    errors = wrong({"criticality": "huge", "breaker": {"failure_rate": 2}, "retry": {"x": 1}})

    assert errors.keys() == {"criticality", "breaker.failure_rate", "retry.x"}


def test_long_open_time_lifts_the_default_longest():
    assert (
        policy.validate_policy({"breaker": {"open_seconds": 600}})["breaker"]["open_max_seconds"]
        == 600
    )


def test_tier_stands_for_its_numbers_where_none_are_given():
    section = policy.validate_policy({"bulkhead": {"tier": "standard", "limit": 9}})["bulkhead"]

    assert (section["limit"], section["queue"], section["queue_seconds"]) == (9, 5, 120)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({"queue": 40}, 5),
        ({"queue": 40, "queue_seconds": None}, 5),
        ({"queue": 40, "queue_seconds": 0}, 0),
        ({"queue": 40, "queue_seconds": 2}, 2),
        ({}, 0),
    ],
)
def test_queue_without_seconds_waits(given, seconds):
    section = policy.validate_policy({"bulkhead": {"limit": 20, **given}})["bulkhead"]

    assert section["queue_seconds"] == seconds


def test_bulkhead_may_be_adaptive():
    arguments = {"limit": 20, "mode": "adaptive", "min_limit": 5, "max_limit": 50}

    section = policy.validate_policy({"bulkhead": arguments})["bulkhead"]

    assert {name: section[name] for name in arguments} == arguments


def test_bulkhead_is_fixed_where_nobody_says_otherwise():
    section = policy.validate_policy({"bulkhead": {"limit": 20}})["bulkhead"]

    assert (section["mode"], section["min_limit"], section["max_limit"]) == (None, None, None)


@pytest.mark.parametrize("tier", ["critical", "standard", "optional"])
def test_tiers_are_those_of_the_contract(tier):
    section = policy.validate_policy({"bulkhead": {"tier": tier}})["bulkhead"]

    numbers = {"critical": (5, 10, 300), "standard": (3, 5, 120), "optional": (2, 3, 60)}
    assert (section["limit"], section["queue"], section["queue_seconds"]) == numbers[tier]


def test_budget_is_made_complete():
    section = policy.validate_policy({"budget": {"per_key_tokens": 500}})["budget"]

    assert section == {"tokens": None, "window_seconds": 60, "per_key_tokens": 500}


def test_outage_policy_is_made_complete():
    outage = policy.validate_outage({"action": "trip", "switch": "segment:finance"})

    assert outage == {
        "action": "trip",
        "open_share": 0.5,
        "for_seconds": 30,
        "expires_in": "1h",
        "switch": "segment:finance",
    }


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"action": "trip"}, "on_outage.switch"),
        ({"action": "fallback", "switch": "segment:x"}, "on_outage.switch"),
        ({"action": "explode"}, "on_outage.action"),
        ({"action": "fallback", "open_share": 0}, "on_outage.open_share"),
        ({"action": "fallback", "expires_in": "soon"}, "on_outage.expires_in"),
        (["trip"], "on_outage"),
        ({"action": "trip", "switch": "global:all"}, "on_outage.switch"),
        ({"action": "trip", "switch": "finance"}, "on_outage.switch"),
        ({"action": "trip", "switch": "segment:a b"}, "on_outage.switch"),
        ({"action": "trip", "switch": "segment:a\n"}, "on_outage.switch"),
        ({"action": "fallback", "expires_in": "31d"}, "on_outage.expires_in"),
    ],
)
def test_wrong_outage_policy_is_refused(value, path):
    with pytest.raises(InvalidInput) as caught:
        policy.validate_outage(value)

    assert list(caught.value.errors) == [path]


@pytest.mark.parametrize("scope", [one for one in SCOPES.names if one != "global"])
def test_any_switch_but_the_global_one_may_be_stopped_by_an_outage(scope):
    switch = f"{scope}:Finance_1.x-y"

    assert policy.validate_outage({"action": "trip", "switch": switch})["switch"] == switch


def test_fallback_may_last_as_long_as_an_override():
    outage = policy.validate_outage({"action": "fallback", "expires_in": "30d"})

    assert outage["expires_in"] == "30d"


@pytest.mark.parametrize(
    ("breaker", "path"),
    [
        ({"failure_count": 11, "window_size": 10}, "breaker.failure_count"),
        ({"failure_threshold": 101}, "breaker.failure_count"),
        ({"half_open_calls": 2, "half_open_concurrent": 3}, "breaker.half_open_concurrent"),
    ],
)
def test_breaker_that_could_not_do_what_it_says_is_refused(breaker, path):
    assert list(wrong({"breaker": breaker})) == [path]


@pytest.mark.parametrize(
    "breaker",
    [
        {"failure_count": 10, "window_size": 10},
        {"failure_threshold": 100, "window_seconds": 10},
        {"half_open_calls": 3, "half_open_concurrent": 3},
    ],
)
def test_breaker_at_its_bounds_is_taken(breaker):
    assert policy.validate_policy({"breaker": breaker})["breaker"]["open_seconds"] == 30


def test_many_unknown_fields_are_told_in_part_and_at_once():
    began = time.monotonic()

    errors = wrong({f"{number}{'x' * 20_000}": 1 for number in range(2_000)})

    assert time.monotonic() - began < 1
    assert errors["fields"] == ["1,980 more are unknown."]
    assert len(errors) == 21
    assert all(len(path) <= 120 for path in errors)


BESIDE = {
    "failure_count": {"window_type": "time"},
    "half_open_concurrent": {"half_open_calls": 10_000},
    "window_seconds": {"tokens": 1},
    "min_limit": {"limit": 1_000_000},
}
"""Fields that a number needs beside it to reach its own bounds."""
NUMBERS = [one for one in PARAMETERS if one.kind in {"whole", "number"} and one.section]


@given(st.data())
def test_number_within_its_bounds_is_kept_and_beyond_them_refused(data):
    one = data.draw(st.sampled_from(NUMBERS))
    value = data.draw(st.integers(-10, 2_000_000))
    base = BESIDE.get(one.name, {"limit": 1} if one.section == "bulkhead" else {})
    longest = {"open_seconds": "open_max_seconds", "base_seconds": "cap_seconds"}
    if one.name in longest.values():  # It depends on another parameter as well.
        return

    try:
        section = policy.validate_policy({one.section: {**base, one.name: value}})[one.section]
    except InvalidInput as error:
        assert list(error.errors) == [one.path]
        assert not one.least <= value <= one.most
    else:
        assert section[one.name] == value
        assert one.least <= value <= one.most
