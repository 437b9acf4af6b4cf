"""Evaluation of rules, compared with an oracle that counts by hand."""

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.rules import evaluation
from switches.rules.evaluation import SafetyRule

SWITCHES = ("global:all", "segment:a", "segment:b", "segment:ab", "feature:a", "experiment:b")
PATTERNS = (
    *SWITCHES,
    "*",
    "segment:*",
    "segment:a*",
    "*:a",
    "feature:*",
    "segment:*b",
    "segment:**",
)

rules = st.builds(
    lambda name, kind, switches, n: SafetyRule(
        name, kind, tuple(switches), n if kind == "at_most" else None
    ),
    st.sampled_from(["x", "y", "결제"]),
    st.sampled_from(evaluation.KINDS),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3),
    st.integers(1, 4),
)
states = st.frozensets(st.sampled_from(SWITCHES))


def in_group(rule, switch):
    """Match by the standard library's globs; only `*` and its id match the global switch."""
    if switch == "global:all":
        return switch in rule.switches or "*" in rule.switches
    return any(fnmatch.fnmatchcase(switch, pattern) for pattern in rule.switches)


def badness(rule, engaged):
    """Return how far the engaged switches violate the rule; 0 if they don't."""
    count = sum(in_group(rule, switch) for switch in engaged)
    if rule.kind == "at_most":
        return max(0, count - rule.n)
    if rule.kind == "exclusive":
        return max(0, count - 1)
    if rule.kind == "at_least_one":
        return 0 if count else 1
    return 0


@given(st.lists(rules, max_size=4), st.sampled_from(SWITCHES), states)
def test_change_is_refused_if_and_only_if_it_makes_a_rule_worse(all_rules, switch, engaged):
    if switch in engaged:
        refused, after = (
            evaluation.refusals_to_release(all_rules, switch, engaged),
            engaged - {switch},
        )
    else:
        refused, after = (
            evaluation.refusals_to_engage(all_rules, switch, engaged),
            engaged | {switch},
        )

    worse = [rule.name for rule in all_rules if badness(rule, after) > badness(rule, engaged)]
    assert [refusal.rule for refusal in refused] == worse


@given(rules, st.sampled_from(SWITCHES), states)
def test_what_would_pass_passes(rule, switch, engaged):
    refused = evaluation.refusals_to_engage([rule], switch, engaged)

    for refusal in refused:
        first = refusal.would_pass.split(" first")[0]
        named = re.findall(r"[a-z]+:[a-z]+", first)
        count = re.match(r"Release (\d+) of", first)
        released = set(named[: int(count[1])] if count else named)
        assert released <= engaged
        assert not evaluation.refusals_to_engage([rule], switch, engaged - released)


@given(rules, states)
def test_violation_and_limit_follow_from_counting(rule, engaged):
    assert bool(evaluation.describe_violation(rule, engaged)) == (badness(rule, engaged) > 0)
    outside = [switch for switch in SWITCHES if switch not in engaged and in_group(rule, switch)]
    if rule.max_engaged is not None and evaluation.is_at_limit(rule, engaged):
        assert all(evaluation.refusals_to_engage([rule], switch, engaged) for switch in outside)


@given(st.text("ab*:", min_size=1, max_size=8), st.text("ab:", max_size=10))
def test_pattern_matches_as_the_standard_library_has_it(pattern, switch):
    assert evaluation.matches(pattern, switch) == fnmatch.fnmatchcase(switch, pattern)


def test_pattern_of_many_stars_is_quick():
    assert not evaluation.matches("segment:" + "*a" * 60, "segment:" + "a" * 59 + "b" * 61)


@pytest.mark.parametrize("pattern", ["global:*", "*:*", "g*", "*all", "global:a*", "global:al"])
def test_global_switch_is_not_meant_by_a_pattern(pattern):
    rule = SafetyRule("x", "exclusive", (pattern, "segment:a"))

    assert not evaluation.refusals_to_engage([rule], "global:all", {"segment:a"})


@pytest.mark.parametrize("pattern", ["global:all", "*"])
def test_global_switch_is_meant_by_its_id_and_by_everything(pattern):
    rule = SafetyRule("x", "exclusive", (pattern, "segment:a"))

    assert evaluation.refusals_to_engage([rule], "global:all", {"segment:a"})


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("segment:*", True),
        ("feature:checkout-*", True),
        ("experiment:a.b_c-D", True),
        ("global:all", True),
        ("*", True),
        ("global:*", False),
        ("**", False),
        ("segment:", False),
        ("segment", False),
        ("*:a", False),
        ("team:a", False),
        ("segment:a b", False),
        ("segment:결제", False),
        ("segment:" + "a" * 121, False),
        ("segment:[ab]", False),
        ("segment:a\n", False),
    ],
)
def test_patterns_that_may_stand_in_a_rule(text, good):
    assert evaluation.is_pattern(text) is good


@pytest.mark.parametrize(
    ("kind", "policy", "held"),
    [
        ("protected", "release", True),
        ("protected", "ramp", True),
        ("protected", "hold", False),
        ("at_least_one", "release", True),
        ("at_least_one", "ramp", False),
        ("at_most", "release", False),
        ("exclusive", "release", False),
    ],
)
def test_policies_that_a_rule_holds(kind, policy, held):
    rule = SafetyRule("x", kind, ("feature:*",), 1 if kind == "at_most" else None)

    assert bool(evaluation.forbidding_rule([rule], "feature:a", policy)) is held
    assert evaluation.forbidding_rule([rule], "segment:a", policy) is None


def test_refusal_names_what_is_engaged_and_how_many_have_to_go():
    rule = SafetyRule("two at most", "at_most", ("segment:*",), 2)

    (refusal,) = evaluation.refusals_to_engage(
        [rule], "segment:d", {"segment:a", "segment:b", "segment:c", "feature:x"}
    )

    assert refusal.detail == (
        "At most 2 of segment:* engaged; 3 are now: segment:a, segment:b, segment:c."
    )
    assert refusal.would_pass == (
        "Release 2 of segment:a, segment:b, segment:c first, then engage segment:d."
    )


def test_the_last_one_says_what_to_engage_first():
    rule = SafetyRule("one way", "at_least_one", ("feature:a", "feature:b"))

    (refusal,) = evaluation.refusals_to_release([rule], "feature:a", {"feature:a"})

    assert refusal.would_pass == "Engage feature:b first, then release feature:a."
