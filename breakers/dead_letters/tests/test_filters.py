"""Filters of letters."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.tests.heaps import compute_fingerprint
from controlplane.core.errors import InvalidInput

AT = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
ORDER = b'{"order": {"id": 17, "paid": true, "items": [{"sku": "A-1"}], "note": "\\uacb0\\uc81c"}}'
NESTED = b'{"body": "{\\"user\\": {\\"name\\": \\"Ada\\"}}"}'


def entry(*pairs, id="1790000000000-0"):
    metadata = ((b"dlq_error", b"order 17 is locked"), (b"dlq_error_type", b"Locked"))
    return LetterEntry(id, (*pairs, *metadata))


LETTER = entry(
    (b"payload", ORDER),
    (b"wrapped", NESTED),
    (b"a.b", b"dotted"),
    (b"twice", b"first"),
    (b"twice", b"second"),
    (b"\xff\x00", b"\x80raw"),
    (b"dlq_failed_at", AT.isoformat().encode()),
)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"error": "IS LOCKED"},
        {"error": "lock"},
        {"error": "LOCKED"},
        {"error": compute_fingerprint("Locked", "order 5 is locked").digest},
        {"error_type": "Locked"},
        {"q": "a-1"},
        {"q": "결제"},
        {"q": "80raw"},
        {"field": "payload"},
        {"field": "payload.order.id"},
        {"field": "payload.order.id=17"},
        {"field": "payload.order.id", "value": "17"},
        {"field": "payload.order.paid", "value": "true"},
        {"field": "payload.order.items.0.sku", "value": "A-1"},
        {"field": "payload.order.items.0", "value": '{"sku":"A-1"}'},
        {"field": "wrapped.body.user.name", "value": "Ada"},
        {"field": "a.b", "value": "dotted"},
        {"field": "twice", "value": "second"},
        {"after": AT.isoformat()},
        {"before": "2026-11-21T02:11:01Z"},
        {"after": "2026-11-21T11:11:00+09:00", "before": "2026-11-21T02:12"},
    ],
)
def test_what_is_asked_for_is_meant(asked):
    assert LetterFilter.from_mapping(asked).matches(LETTER)


@pytest.mark.parametrize(
    "asked",
    [
        {"error": "timeout"},
        {"error_type": "Lock"},
        {"error_type": "locked"},
        {"q": "A-2"},
        {"field": "missing"},
        {"field": "payload.order.id", "value": "1"},
        {"field": "payload.order.id.deeper"},
        {"field": "payload.order.items.1.sku"},
        {"field": "payload.order.items.99999999999999999999.sku"},
        {"field": "twice", "value": "third"},
        {"field": "payload", "value": ""},
        {"after": "2026-11-21T02:11:01Z"},
        {"before": AT.isoformat()},
        {"error_type": "Locked", "q": "A-2"},
    ],
)
def test_what_is_not_asked_for_is_not(asked):
    assert not LetterFilter.from_mapping(asked).matches(LETTER)


def test_without_a_time_that_can_be_believed_it_is_when_it_was_added():
    letter = entry((b"dlq_failed_at", b"9999-01-01T00:00:00Z"), id="1700000000000-0")

    assert LetterFilter.from_mapping({"before": "2023-11-15T00:00:00Z"}).matches(letter)
    assert not LetterFilter.from_mapping({"after": "2023-11-15T00:00:00Z"}).matches(letter)


def test_without_any_time_no_time_is_meant():
    assert not LetterFilter.from_mapping({"before": "2099-01-01T00:00:00Z"}).matches(
        entry(id="5-0")
    )


def test_what_is_empty_is_not_asked_for():
    arguments = dict.fromkeys(("fingerprint", "error", "error_type", "q", "field", "value"), "")

    assert LetterFilter.from_mapping({**arguments, "before": None}) == LetterFilter()
    assert LetterFilter().is_everything


@pytest.mark.parametrize(
    ("asked", "needs_payload", "uses_index"),
    [
        ({}, False, False),
        ({"q": "x"}, True, False),
        ({"field": "x"}, True, False),
        ({"error": "x"}, False, True),
        ({"fingerprint": "x", "q": "y"}, True, True),
        ({"before": "2026-01-01"}, False, True),
    ],
)
def test_it_is_known_what_has_to_be_read(asked, needs_payload, uses_index):
    chosen = LetterFilter.from_mapping(asked)

    assert (chosen.needs_payload, chosen.uses_index) == (needs_payload, uses_index)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"colour": "red"}, "colour"),
        ({"q": 17}, "q"),
        ({"q": ["a"]}, "q"),
        ({"q": "x" * 301}, "q"),
        ({"q": "\0"}, "q"),
        ({"error": "\ud800"}, "error"),
        ({"field": "a." * 40}, "field"),
        ({"value": "17"}, "value"),
        ({"before": "tomorrow"}, "before"),
        ({"after": 17}, "after"),
        ({"after": "0001-01-01T00:00:00+23:00"}, "after"),
    ],
)
def test_what_makes_no_sense_is_refused(asked, named):
    with pytest.raises(InvalidInput) as refused:
        LetterFilter.from_mapping(asked)

    assert set(refused.value.errors) == {named}


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("fingerprint", "error", "error_type", "q"), TEXTS),
            "field": TEXTS.filter(lambda said: not said.startswith("=")),
            "before": st.datetimes(timezones=st.just(UTC), min_value=datetime(1, 1, 2)),  # noqa: DTZ001
        },
    )
)
def test_it_comes_back_from_json_as_it_was(asked):
    chosen = LetterFilter.from_mapping(asked)

    assert LetterFilter.from_mapping(chosen.as_dict()) == chosen


@given(
    st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=60)), max_size=8),
    TEXTS.filter(bool),
)
def test_any_bytes_are_looked_through_and_nothing_is_found_that_is_not_there(pairs, wanted):
    letter = LetterEntry("1-1", tuple(pairs))
    absent = "𝄞" + wanted  # No 30 bytes that hypothesis finds say so by accident.

    assert LetterFilter(q=wanted).matches(letter) in (True, False)
    assert LetterFilter(q=absent).matches(letter) is False
    assert LetterFilter(field=absent, value=absent).matches(letter) is False
    assert LetterFilter(error=absent).matches(letter) is False


HIDING = entry(
    (b"payload", b'{"user": "ada", "password": "hunter2"}'),
    (b"token", b"t0ken-of-mine"),
    (b"escaped", b'{"pass\\u0077ord": "hunter3"}'),
    (b"dlq_error", b"refused: password=hunter4"),
)


@pytest.mark.parametrize(
    "asked",
    [
        {"q": "hunter2"},
        {"q": "hunter3"},
        {"q": "t0ken"},
        {"field": "payload.password=hunter2"},
        {"field": "payload.password", "value": "hunter2"},
        {"field": "token", "value": "t0ken-of-mine"},
        {"field": "escaped.password", "value": "hunter3"},
    ],
)
def test_what_is_hidden_is_not_found_by_asking_for_it(asked):
    assert not LetterFilter.from_mapping(asked).matches(HIDING)


def test_what_is_hidden_in_an_error_is_not_found_by_asking_for_it():
    refused = LetterEntry("1-0", ((b"dlq_error", b"refused: password=hunter4"),))

    assert LetterFilter.from_mapping({"error": "refused"}).matches(refused)
    assert not LetterFilter.from_mapping({"error": "hunter4"}).matches(refused)


def test_beside_what_is_hidden_all_is_found():
    assert LetterFilter.from_mapping({"q": "ada"}).matches(HIDING)
    assert LetterFilter.from_mapping({"field": "payload.password"}).matches(HIDING)
    assert LetterFilter.from_mapping({"field": "payload.user", "value": "ada"}).matches(HIDING)
