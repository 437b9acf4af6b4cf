"""Differences between a message and its edited version."""

import fnmatch

from breakers.dead_letters.letters import differences
from breakers.dead_letters.letters.differences import FieldChange
from breakers.dead_letters.letters.redaction import Redaction

REDACTION = Redaction(lambda key: fnmatch.fnmatchcase(key, "*secret*"))


def between(before, after):
    return differences.compare_messages(before, after, REDACTION)


def test_values_in_json_are_told_by_their_path():
    before = [(b"payload", b'{"order":{"items":[{"sku":"a","n":1}]},"x":1}')]
    after = [(b"payload", b'{"order":{"items":[{"sku":"b","n":1},{"sku":"c"}]},"x":1}')]

    assert between(before, after) == [
        FieldChange("payload.order.items.0.sku", '"a"', '"b"'),
        FieldChange("payload.order.items.1.sku", None, '"c"'),
    ]


def test_fields_that_came_and_went_are_told():
    assert between([(b"a", b"1"), (b"b", b"2")], [(b"a", b"1"), (b"c", b"3")]) == [
        FieldChange("b", "2", None),
        FieldChange("c", None, "3"),
    ]


def test_change_of_a_hidden_value_is_told_without_the_values():
    before = [(b"p", b'{"secret":{"k":"x"},"n":1}'), (b"my_secret", b"x")]
    after = [(b"p", b'{"secret":{"k":"y"},"n":1}'), (b"my_secret", b"y")]

    assert between(before, after) == [
        FieldChange("p.secret.k", "[redacted]", "[redacted]"),
        FieldChange("my_secret", "[redacted]", "[redacted]"),
    ]


def test_change_under_a_hidden_key_with_dots_is_told_without_the_values():
    hiding = Redaction(lambda key: key == "db.url")
    before = [(b"p", b'{"db.url":"x","pool":{"db.url":{"main":"x"}}}')]
    after = [(b"p", b'{"db.url":"y","pool":{"db.url":{"main":"y"}}}')]

    assert differences.compare_messages(before, after, hiding) == [
        FieldChange("p.db.url", "[redacted]", "[redacted]"),
        FieldChange("p.pool.db.url.main", "[redacted]", "[redacted]"),
    ]


def test_number_that_became_a_text_is_a_change():
    assert between([(b"p", b'{"n":1}')], [(b"p", b'{"n":"1"}')]) == [FieldChange("p.n", "1", '"1"')]


def test_json_that_became_none_is_told_as_a_whole():
    assert between([(b"p", b'{"n":1}')], [(b"p", b"{n:1}")]) == [
        FieldChange("p", '{"n":1}', "{n:1}")
    ]


def test_structure_too_deep_to_go_into_is_told_as_a_whole():
    deep = b"[" * 900 + b"]" * 900

    (change,) = between([(b"p", deep)], [(b"p", deep.replace(b"[]", b"[1]"))])

    assert (change.path, change.before) == ("p", deep.decode())
