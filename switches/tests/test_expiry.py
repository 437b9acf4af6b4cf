"""Expiry: requested times, scope defaults and field errors."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import InvalidInput
from switches.expiry import Expiry, plan_expiry, plan_extension

NOW = datetime(2026, 11, 21, 2, 10, tzinfo=UTC)


def refusal(**expiry: str | None) -> dict[str, list[str]]:
    arguments: dict[str, str | None] = {"scope": "segment", **expiry}
    with pytest.raises(InvalidInput) as refused:
        plan_expiry(now=NOW, **arguments)  # type: ignore[arg-type]
    return refused.value.errors


@pytest.mark.parametrize(
    ("expires_in", "lifetime"),
    [
        ("1s", timedelta(seconds=1)),
        ("90s", timedelta(seconds=90)),
        ("24h", timedelta(hours=24)),
        ("1w", timedelta(days=7)),
        ("30d", timedelta(days=30)),
    ],
)
def test_expires_in_counts_from_now(expires_in: str, lifetime: timedelta) -> None:
    expiry = plan_expiry(scope="segment", expires_in=expires_in, now=NOW)

    assert expiry == Expiry(NOW + lifetime, permanent_requested=False, on_expiry="hold")


@pytest.mark.parametrize(
    ("expires_at", "moment"),
    [
        ("2026-11-21T02:10:01Z", NOW + timedelta(seconds=1)),
        ("2026-11-21t11:10:01+09:00", NOW + timedelta(seconds=1)),
        ("2026-11-22 02:10:00z", NOW + timedelta(days=1)),
        ("2026-11-21T03:10:00.5-00:00", NOW + timedelta(hours=1, milliseconds=500)),
        ("2026-11-21T03:10:00.1234569Z", NOW + timedelta(hours=1, microseconds=123_456)),
        ("2026-12-21T02:10:00Z", NOW + timedelta(days=30)),
    ],
)
def test_expires_at_is_that_moment_in_utc(expires_at: str, moment: datetime) -> None:
    expiry = plan_expiry(scope="feature", expires_at=expires_at, now=NOW)

    assert expiry.expires_at == moment
    assert expiry.expires_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("field", ["expires_in", "expires_at"])
def test_permanent_is_24_hours_for_now_and_asks_to_stay(field: str) -> None:
    expiry = plan_expiry(scope="global", now=NOW, **{field: "permanent"})

    assert expiry == Expiry(NOW + timedelta(hours=24), permanent_requested=True, on_expiry="hold")


@pytest.mark.parametrize(
    ("scope", "policy"),
    [("global", "hold"), ("segment", "hold"), ("feature", "ramp"), ("experiment", "ramp")],
)
def test_on_expiry_defaults_by_scope(scope: str, policy: str) -> None:
    for left_out in (None, ""):
        expiry = plan_expiry(scope=scope, expires_in="24h", on_expiry=left_out, now=NOW)
        assert expiry.on_expiry == policy


@pytest.mark.parametrize("scope", ["segment", "feature", "experiment"])
@pytest.mark.parametrize("policy", ["hold", "ramp", "release"])
def test_on_expiry_is_free_below_global(scope: str, policy: str) -> None:
    expiry = plan_expiry(scope=scope, expires_in="24h", on_expiry=policy, now=NOW)

    assert expiry.on_expiry == policy


@pytest.mark.parametrize("policy", ["ramp", "release"])
def test_global_that_lets_go_by_itself_is_refused(policy: str) -> None:
    errors = refusal(scope="global", expires_in="24h", on_expiry=policy)

    assert list(errors) == ["on_expiry"]
    assert "two people" in errors["on_expiry"][0]


def test_unknown_policy_is_refused_with_the_known_ones() -> None:
    errors = refusal(expires_in="24h", on_expiry="Hold")

    assert "hold, ramp, release" in errors["on_expiry"][0]


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_no_expiry_is_refused(blank: str | None) -> None:
    errors = refusal(expires_in=blank, expires_at=blank)

    assert "expiry is required" in errors["expires_in"][0]


def test_two_expiries_are_refused() -> None:
    errors = refusal(expires_in="24h", expires_at="2026-11-22T00:00:00Z")

    assert "not both" in errors["expires_at"][0]


def test_a_blank_field_of_a_form_counts_as_left_out() -> None:
    expiry = plan_expiry(scope="segment", expires_in="24h", expires_at="", now=NOW)

    assert expiry.expires_at == NOW + timedelta(hours=24)


@pytest.mark.parametrize(
    ("expires_at", "message"),
    [
        ("2026-11-21T02:09:59Z", "in the past. It is now 2026-11-21 02:10:00 UTC"),
        ("2026-11-21T02:10:00Z", "in the past"),
        ("2026-11-21T10:00:00+09:00", "in the past"),
        ("0001-01-01T00:00:00Z", "in the past"),
        ("2026-11-21T02:10:00.999999Z", "at least 1 s"),
        ("2026-12-21T02:10:00.000001Z", "at most 30 days"),
        ("9999-12-31T23:59:59Z", "at most 30 days"),
        ("2026-11-22T00:00:00", "needs a UTC offset"),
        ("2026-11-22 00:00:00.5", "needs a UTC offset"),
        ("2026-02-30T00:00:00Z", "time doesn't exist"),
        ("2026-11-22T24:00:00Z", "time doesn't exist"),
        ("2026-11-22T00:00:60Z", "time doesn't exist"),
        ("2026-11-22T00:00:00+99:00", "time doesn't exist"),
        ("0000-01-01T00:00:00Z", "time doesn't exist"),
        ("0001-01-01T00:00:00+23:59", "time doesn't exist"),
        ("9999-12-31T23:59:59-23:59", "time doesn't exist"),
        ("2026-11-22", "RFC 3339"),
        ("2026-11-22T00:00Z", "RFC 3339"),
        ("20261122T000000Z", "RFC 3339"),
        ("2026-W47-1T00:00:00Z", "RFC 3339"),
        ("２０２６-11-22T00:00:00Z", "RFC 3339"),
        ("1795305600", "RFC 3339"),
        ("tomorrow", "RFC 3339"),
        ("24h", "RFC 3339"),
        ("Permanent", "RFC 3339"),
    ],
)
def test_wrong_expires_at_is_refused_with_the_reason(expires_at: str, message: str) -> None:
    errors = refusal(expires_at=expires_at)

    assert list(errors) == ["expires_at"]
    assert message in errors["expires_at"][0]


@pytest.mark.parametrize(
    ("expires_in", "message"),
    [
        ("31d", "at most 30 days"),
        ("721h", "at most 30 days"),
        ("5w", "at most 30 days"),
        ("99999999999d", "limited to 3650 days"),
        ("0s", "longer than zero"),
        ("1.5h", "whole number"),
        ("-1h", "whole number"),
        ("forever", "whole number"),
    ],
)
def test_wrong_expires_in_is_refused_with_the_reason(expires_in: str, message: str) -> None:
    errors = refusal(expires_in=expires_in)

    assert list(errors) == ["expires_in"]
    assert message in errors["expires_in"][0]


def test_every_wrong_field_is_told_at_once() -> None:
    errors = refusal(scope="global", expires_in="never", on_expiry="release")

    assert set(errors) == {"expires_in", "on_expiry"}


def test_extension_counts_from_now_not_from_the_present_expiry() -> None:
    present = NOW + timedelta(hours=3)

    assert plan_extension(expires_in="24h", present=present, now=NOW) == NOW + timedelta(hours=24)


@pytest.mark.parametrize("present", [NOW - timedelta(hours=1), None])
def test_extension_of_an_overdue_or_open_ended_episode_is_allowed(present: datetime | None) -> None:
    ends = plan_extension(expires_in="1h", present=present, now=NOW)

    assert ends == NOW + timedelta(hours=1)


@pytest.mark.parametrize("expires_in", ["2h", "3h"])
def test_extension_not_later_than_the_present_expiry_is_refused(expires_in: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan_extension(expires_in=expires_in, present=NOW + timedelta(hours=3), now=NOW)

    assert "Choose more than 3 h" in refused.value.errors["expires_in"][0]


@pytest.mark.parametrize("expires_in", ["31d", "", "permanent", "1.5h"])
def test_extension_by_what_is_no_duration_is_refused(expires_in: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan_extension(expires_in=expires_in, present=NOW + timedelta(hours=3), now=NOW)

    assert list(refused.value.errors) == ["expires_in"]


@given(
    moment=st.datetimes(
        datetime(2026, 11, 1),  # noqa: DTZ001
        datetime(2027, 1, 15),  # noqa: DTZ001
        timezones=st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m))),
    )
)
def test_expires_at_is_accepted_exactly_within_a_second_and_thirty_days(moment: datetime) -> None:
    within = timedelta(seconds=1) <= moment - NOW <= timedelta(days=30)
    try:
        expiry = plan_expiry(scope="segment", expires_at=moment.isoformat(), now=NOW)
    except InvalidInput:
        assert not within
    else:
        assert within
        assert expiry.expires_at == moment


@given(st.text(), st.sampled_from(["expires_in", "expires_at"]), st.text(max_size=8))
def test_any_text_is_an_expiry_within_bounds_or_a_field_error(
    text: str, field: str, policy: str
) -> None:
    try:
        expiry = plan_expiry(scope="segment", on_expiry=policy, now=NOW, **{field: text})
    except InvalidInput as error:
        errors = error.errors
    else:
        errors = {}
        assert timedelta(seconds=1) <= expiry.expires_at - NOW <= timedelta(days=30)
    assert set(errors) <= {"expires_in", "expires_at", "on_expiry"}
    assert all(errors.values())
