"""One change for many messages: where it applies, and what it leaves as it is."""

import pytest

from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.field_edits import FieldEdit, parse_value
from breakers.dead_letters.letters.redaction import configured_redaction
from controlplane.core.errors import InvalidInput

DOCUMENT = b'{"id": 12345678901234567890.50, "order": {"currency": "US", "lines": [{"n": 1}]}}'
ENTRY = LetterEntry(
    "1-0",
    (
        (b"payload", DOCUMENT),
        (b"kind", b"order"),
        (b"nested", b'{"body": "{\\"a\\": 1}"}'),
        (b"password", b"hunter2"),
        (b"dlq_error", b"no such currency"),
    ),
)


def edit(**given):
    pairs = FieldEdit.from_mapping(given).apply(ENTRY, configured_redaction())
    return None if pairs is None else dict(pairs)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        (
            {"op": "set", "path": "payload.order.currency", "value": "USD"},
            b"payload",
            b'{"id":12345678901234567890.50,"order":{"currency":"USD","lines":[{"n":1}]}}',
        ),
        (
            {"op": "set", "path": "payload.order.lines.0.n", "value": None},
            b"payload",
            b'{"id":12345678901234567890.50,"order":{"currency":"US","lines":[{"n":null}]}}',
        ),
        (
            {"op": "replace", "path": "payload.order.currency", "find": "US", "value": "USD"},
            b"payload",
            b'{"id":12345678901234567890.50,"order":{"currency":"USD","lines":[{"n":1}]}}',
        ),
        (
            {"op": "remove", "path": "payload.order.lines"},
            b"payload",
            b'{"id":12345678901234567890.50,"order":{"currency":"US"}}',
        ),
        ({"op": "set", "path": "nested.body.a", "value": 2}, b"nested", b'{"body":"{\\"a\\":2}"}'),
        ({"op": "set", "path": "kind", "value": "refund"}, b"kind", b"refund"),
        ({"op": "set", "path": "version", "value": 2}, b"version", b"2"),
        ({"op": "remove", "path": "kind"}, b"kind", None),
    ],
)
def test_edit_changes_one_place(given, name, value):
    edited = edit(**given)

    assert edited.get(name) == value
    others = {one: content for one, content in ENTRY.original if one != name}
    assert {one: content for one, content in edited.items() if one != name} == others


@pytest.mark.parametrize(
    "given",
    [
        {"op": "replace", "path": "payload.order.currency", "find": "EUR", "value": "USD"},
        {"op": "replace", "path": "payload.order.lines.0.n", "find": True, "value": 2},
        {"op": "replace", "path": "password", "find": "hunter2", "value": "x"},
        {"op": "remove", "path": "payload.order.none"},
        {"op": "set", "path": "payload.none.deep", "value": 1},
        {"op": "set", "path": "kind.deep", "value": 1},
        {"op": "set", "path": "kind", "value": "order"},
    ],
)
def test_edit_that_does_not_apply_leaves_the_letter_out(given):
    assert edit(**given) is None


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"op": "add", "path": "a"}, "op"),
        ({"op": "remove", "path": ""}, "path"),
        ({"op": "remove", "path": "dlq_error"}, "path"),
        ({"op": "remove", "path": "a", "value": 1}, "value"),
        ({"op": "replace", "path": "a", "value": 1}, "find"),
        ({"op": "set", "path": "a", "value": "[redacted]"}, "value"),
    ],
)
def test_invalid_edit_is_refused(given, wrong):
    with pytest.raises(InvalidInput) as refused:
        FieldEdit.from_mapping(given)

    assert wrong in refused.value.errors


def test_values_of_a_hidden_path_are_not_shown():
    shown = FieldEdit("set", "user.password", "hunter3").redacted(configured_redaction())

    assert shown["value"] == "[redacted]"


@pytest.mark.parametrize(("text", "value"), [("5", 5), ('"5"', "5"), ("USD", "USD"), ("", "")])
def test_text_of_a_form_is_read_as_json_if_it_is(text, value):
    assert parse_value(text) == value
