"""Valid parts of the console's configuration apply, invalid ones keep their value."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.policies.policy import validate_policy
from switchgear.patterns.parameters import TIERS, BreakerParameters, RetryParameters
from switchgear.policies.documents import (
    EMPTY_CONFIG,
    DependencyConfig,
    ForcedMode,
    InvalidDocument,
    parse_document,
    path_pattern,
)
from tests.hypothesis_examples import examples

NAME = "core->oracle"
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def parse_fields(before=EMPTY_CONFIG, **fields):
    body = json.dumps({"version": 3, "dependencies": {NAME: fields}}).encode()
    document = parse_document(body, {NAME: before})
    return document.dependencies[NAME], document.problems


def test_policy_as_the_console_completes_it_is_read_whole():
    fields = validate_policy(
        {
            "timeout_ms": 60000,
            "routes": [{"pattern": "/event-logs/**", "timeout_ms": 300000}],
            "breaker": {"failure_threshold": 5, "window_seconds": 60, "open_seconds": 15},
            "retry": {"attempts": 2, "retry_on": [503, "timeout"]},
            "bulkhead": {"tier": "critical", "limit": 7},
            "fallback": {"mode": "cache"},
        }
    )

    found, complaints = parse_fields(**fields, override=None)

    assert complaints == ()
    assert found.timeout_seconds == 60
    assert found.route_timeout("/event-logs/7/rows") == 300
    assert found.route_timeout("/cases") is None
    assert found.breaker == BreakerParameters(
        window_type="time", window_size=60, failure_count=5, open_seconds=15
    )
    assert found.retry == RetryParameters(attempts=2, retry_on=(503, "timeout"))
    assert (found.bulkhead.limit, found.bulkhead.queue) == (7, 10)
    assert found.fallback["mode"] == "cache"


def test_policy_that_says_nothing_leaves_all_to_the_code():
    found, complaints = parse_fields(**validate_policy({}))

    assert (found, complaints) == (EMPTY_CONFIG, ())


@pytest.mark.parametrize("seconds", [0, 30])
def test_limit_of_probes_is_taken_from_new_and_old_consoles_alike(seconds):
    found, complaints = parse_fields(
        **validate_policy({"breaker": {"half_open_max_seconds": seconds}})
    )

    assert complaints == ()
    assert found.breaker == BreakerParameters(window_size=100, half_open_max_seconds=seconds)


def test_other_words_of_a_breaker_are_understood_without_its_own():
    found, _ = parse_fields(breaker={"failure_threshold": 3, "window_seconds": 30})

    assert found.breaker == BreakerParameters(window_type="time", window_size=30, failure_count=3)


def test_tier_alone_stands_for_its_numbers():
    found, _ = parse_fields(bulkhead={"tier": "optional"})

    assert found.bulkhead == TIERS["optional"]


@pytest.mark.parametrize(
    ("section", "wrong"),
    [
        ("timeout_ms", "fast"),
        ("timeout_ms", 0),
        ("routes", [{"pattern": 7, "timeout_ms": 1}]),
        ("breaker", {"failure_rate": 2}),
        ("breaker", [1]),
        ("retry", {"attempts": 0}),
        ("retry", {"retry_on": "all"}),
        ("bulkhead", {"tier": "gold"}),
        ("bulkhead", {}),
        ("fallback", "none"),
        ("override", {"mode": "shut", "version": 1, "expires_at": "2026-11-22T00:00:00Z"}),
        ("override", {"mode": "disabled", "version": 1, "expires_at": "soon"}),
    ],
)
def test_section_that_cannot_be_read_is_left_as_it_was(section, wrong):
    before, _ = parse_fields(
        timeout_ms=500,
        routes=[{"pattern": "/a", "timeout_ms": 1}],
        breaker={"minimum_calls": 7},
        retry={"attempts": 2},
        bulkhead={"limit": 1},
        fallback={"mode": "error"},
        override={"mode": "disabled", "version": 1, "expires_at": "2026-11-22T00:00:00Z"},
    )
    fields = {"timeout_ms": 900, section: wrong}

    found, complaints = parse_fields(before, **fields)

    assert len(complaints) == 1
    assert complaints[0].startswith(f"{NAME}: {section}: ")
    name = "timeout_seconds" if section == "timeout_ms" else section
    assert getattr(found, name) == getattr(before, name)
    assert section == "timeout_ms" or found.timeout_seconds == 0.9


def test_override_ends_at_its_moment():
    found, _ = parse_fields(
        override={
            "mode": "forced_open",
            "reason": "a drill",
            "version": 9,
            "expires_at": "2026-11-22T03:00:00.500000+00:00",
        }
    )

    assert found.override == ForcedMode("forced_open", 1795316400.5, 9, "a drill")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"version":1}',
        b'{"dependencies":{}}',
        b'{"version":true,"dependencies":{}}',
        b'{"version":-1,"dependencies":{}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_document_is_refused(body):
    with pytest.raises(InvalidDocument):
        parse_document(body, {})


@examples(100)
@given(
    st.dictionaries(
        st.sampled_from(
            ["timeout_ms", "routes", "breaker", "retry", "bulkhead", "fallback", "override"]
        ),
        ANYTHING
        | st.dictionaries(
            st.sampled_from(["attempts", "limit", "tier", "mode", "version", "failure_rate"]),
            ANYTHING,
        ),
    )
)
def test_whatever_a_policy_says_it_can_be_read(fields):
    found, _ = parse_fields(**fields)

    assert isinstance(found, DependencyConfig)


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("/a/**", ["/a", "/a/", "/a/b/c"], ["/ab", "/b"]),
        ("/**", ["", "/", "/x/y"], ["x"]),
        ("/a/*/c", ["/a/b/c"], ["/a/b/d/c", "/a/c"]),
        ("/a/**/c", ["/a/b/c", "/a/b/d/c"], ["/a/b"]),
        ("/a/*/**", ["/a/b", "/a/b/c"], ["/a", "/b/a"]),
        ("/a.b/*", ["/a.b/c"], ["/axb/c"]),
        ("/x/**/y/*/z", ["/x/1/y/2/z", "/x/1/y/2/3/y/4/z"], ["/x/1/y/2/3/z"]),
        ("/**/users/*", ["/v1/users/b", "/v1/users/a/users/b"], ["/v1/users/a/b", "/users/a"]),
        ("/**/a/*/b/**/c/*", ["/a/x/a/y/b/c/x/c/z"], ["/a/x/y/b/c/z", "/x/a/y/b/c"]),
        ("/**/a/*/**", ["/x/a/y", "/x/a/y/z/b"], ["/x/a", "/a/y"]),
    ],
)
def test_route_is_found_by_its_pattern(pattern, fits, does_not):
    found, _ = parse_fields(routes=[{"pattern": pattern, "timeout_ms": 1000}])

    assert [found.route_timeout(path) for path in fits] == [1.0] * len(fits)
    assert [found.route_timeout(path) for path in does_not] == [None] * len(does_not)


def test_pattern_of_many_asterisks_takes_no_time():
    pattern = "/" + "*a" * 60
    found, _ = parse_fields(routes=[{"pattern": pattern, "timeout_ms": 1000}])

    assert found.route_timeout("/" + "a" * 20_000 + "b") is None


def fits(pattern, path):
    """Match a pattern by trying all possibilities."""
    if pattern == "/**" and path == "":
        return True
    if pattern.startswith("**"):
        return fits(pattern[2:], path) or (bool(path) and fits(pattern, path[1:]))
    if pattern.startswith("*"):
        return fits(pattern[1:], path) or (path[:1] not in ("", "/") and fits(pattern, path[1:]))
    if not pattern or not path:
        return pattern == path
    return pattern[0] == path[0] and fits(pattern[1:], path[1:])


PARTS = {
    "/": st.just("/"),
    "a": st.just("a"),
    "b": st.just("b"),
    "*": st.text("ab", max_size=3),
    "**": st.text("/ab", max_size=6),
}


@st.composite
def pattern_and_path(draw):
    """The path is one that fits, perhaps but for what comes after it."""
    parts = draw(st.lists(st.sampled_from(list(PARTS)), max_size=10))
    pattern = re.sub(r"\*\*+", "**", "".join(parts))
    return pattern, "".join(draw(PARTS[part]) for part in parts) + draw(st.text("/ab", max_size=2))


@examples(250)
@given(pattern_and_path())
def test_any_pattern_fits_what_it_means(given):
    pattern, path = given

    assert bool(path_pattern(pattern).fullmatch(path)) == fits(pattern, path)


def test_asterisks_after_any_rest_take_no_time():
    found, _ = parse_fields(routes=[{"pattern": "/**/a/*/b" * 10 + "/*c", "timeout_ms": 1000}])
    began = time.monotonic()

    assert found.route_timeout("/a/x" * 2_000) is None
    assert found.route_timeout("/a/x/b" * 2_000) is None
    assert time.monotonic() - began < 2
