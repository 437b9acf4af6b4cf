"""A message as somebody corrected it."""

import pytest

from breakers.dead_letters.letters import edits
from breakers.dead_letters.letters.entries import LetterEntry
from controlplane.core.errors import InvalidInput

BINARY = b"\xff\x00\xfe"
ENTRY = LetterEntry(
    "1-1",
    (
        (b"order", b"17"),
        (b"blob", BINARY),
        (b"tag", b"a"),
        (b"tag", b"b"),
        (b"dlq_error", b"timeout"),
        (b"dlq_retry_count", b"1"),
        (b"note", "발송".encode()),
    ),
)


def edited(**fields):
    return edits.apply_edits(ENTRY, fields)


def test_other_fields_stay_as_they_were_in_order_and_bytes():
    assert edited(order="18") == (
        (b"order", b"18"),
        (b"blob", BINARY),
        (b"tag", b"a"),
        (b"tag", b"b"),
        (b"dlq_retry_count", b"1"),
        (b"note", "발송".encode()),
    )


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("", b""),
        ("  spaced ", b"  spaced "),
        ("nul\0", b"nul\0"),
        ("شكرا 🚀", "شكرا 🚀".encode()),
        (18, b"18"),
        (True, b"true"),
        ({"b": [1, None], "a": "é"}, '{"b":[1,null],"a":"é"}'.encode()),
        ([1, 2], b"[1,2]"),
    ],
)
def test_a_value_is_written_as_text_or_as_compact_json(given, value):
    assert dict(edited(order=given))[b"order"] == value


def test_null_takes_a_field_out_and_new_names_come_last():
    changed = edited(order=None, extra="x")

    assert b"order" not in dict(changed)
    assert changed[-1] == (b"extra", b"x")


def test_a_name_that_is_there_twice_takes_as_many_values():
    changed = edited(tag=["x", {"y": 1}])

    assert [value for name, value in changed if name == b"tag"] == [b"x", b'{"y":1}']


def test_null_takes_out_a_name_that_is_there_twice():
    assert b"tag" not in dict(edited(tag=None))


def test_a_name_that_is_no_text_is_edited_under_what_it_is_shown_as():
    entry = LetterEntry("1-1", ((b"\xff", b"a"), (b"b", b"c")))

    assert edits.apply_edits(entry, {"\\xff": "new"}) == ((b"\xff", b"new"), (b"b", b"c"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"order": "[redacted]"}, "hidden"),
        ({"order": {"card": {"cvc": "[redacted]"}}}, "hidden"),
        ({"order": '{"cvc": "\\u005bredacted]"}'}, "hidden"),
        ({"order": '{"in": "{\\\\u005b\\\\u0072edacted]}"}'}, "hidden"),
        ({"dlq_error": "none"}, "not part of the message"),
        ({"dlq_retry_count": "0"}, "not part of the message"),
        ({"tag": "x"}, "2 fields of this name"),
        ({"tag": ["x"]}, "2 fields of this name"),
        ({"order": "\ud800"}, "UTF-8"),
        ({"order": float("nan")}, "JSON"),
        ({"": "x"}, "this name"),
        ({"\ud800": "x"}, "this name"),
    ],
)
def test_what_can_not_be_a_value_is_refused_by_name(fields, message):
    with pytest.raises(InvalidInput) as refused:
        edits.apply_edits(ENTRY, fields)

    ((name, problems),) = refused.value.errors.items()
    assert name.startswith("edited_fields.")
    assert message in " ".join(problems)


def test_nothing_left_is_refused():
    with pytest.raises(InvalidInput, match="at least one field"):
        edits.apply_edits(LetterEntry("1-1", ((b"a", b"b"), (b"dlq_error", b"x"))), {"a": None})
