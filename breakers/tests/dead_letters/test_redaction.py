"""What is hidden of payloads, however they are written."""

import fnmatch
import json
import time

import pytest

from breakers.dead_letters.letters.entries import Entry
from breakers.dead_letters.letters.redaction import REDACTED, Redaction

GLOBS = ("*password*", "*secret*", "*token*", "pin")
REDACTION = Redaction(lambda key: any(fnmatch.fnmatchcase(key.lower(), glob) for glob in GLOBS))


def within(text):
    return REDACTION.within(text.encode()).decode()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"a":1.10,"password":"x","b":2}', '{"a":1.10,"password":"[redacted]","b":2}'),
        ('{"secret":{"a":"}\\"]","b":[1]},"c":1}', '{"secret":"[redacted]","c":1}'),
        ('{"pin": 1234, "pins": [1]}', '{"pin": "[redacted]", "pins": [1]}'),
        ('{"token":["a","b"],"z":null}', '{"token":"[redacted]","z":null}'),
        ('{"pass\\u0077ord":"x"}', '{"pass\\u0077ord":"[redacted]"}'),
        ("{'password': 'x', 'n': (1, 2)}", "{'password': '[redacted]', 'n': (1, 2)}"),
        ('can\'t do {"password": "x"}', 'can\'t do {"password": "[redacted]"}'),
        ("user=a&password=b%20c&x=1", "user=a&password=[redacted]&x=1"),
        ('{"url":"https://x/?token=abc&z=1"}', '{"url":"https://x/?token=[redacted]&z=1"}'),
        ('{"a":1,"password":"cut off he', '{"a":1,"password":"[redacted]"'),
        ("nothing to hide: password", "nothing to hide: password"),
        ("", ""),
    ],
)
def test_values_under_hidden_keys_are_hidden_and_the_rest_is_as_it_was(given, expected):
    assert within(given) == expected


def test_json_inside_json_inside_json_is_hidden_and_still_json():
    inner = json.dumps({"secret": ['a"b\\'], "n": 1})
    middle = json.dumps({"password": 'q"\\', "inner": inner})

    shown = json.loads(within(json.dumps({"body": middle, "k": 1})))

    middle_shown = json.loads(shown["body"])
    assert (shown["k"], middle_shown["password"]) == (1, REDACTED)
    assert json.loads(middle_shown["inner"]) == {"secret": REDACTED, "n": 1}


def test_json_with_bytes_that_are_no_text_is_hidden():
    assert REDACTION.within(b'\xff{"token":"x"}\xfe') == b'\xff{"token":"[redacted]"}\xfe'


def test_field_with_a_hidden_name_is_hidden_also_behind_dots():
    entry = Entry("1-0", ((b"user.password", b"x"), (b"Api_Token", b"y"), (b"name", b"z")))

    shown = REDACTION.entry(entry)

    assert [value for _, value in shown.pairs] == [b"[redacted]", b"[redacted]", b"z"]


def test_value_that_was_read_in_part_still_says_that_it_is_longer():
    entry = Entry("1-0", ((b"payload", b'{"a":1'), (b"pin", b"123")), sizes=(9000, 9000))

    assert REDACTION.entry(entry).sizes == (9000, len(REDACTED))


@pytest.mark.parametrize(
    "given", ['"\\"' * 300_000, '"' * 1_000_000, "\\" * 1_000_000, '{"password":' * 100_000]
)
def test_text_made_to_take_long_takes_no_longer_than_its_length(given):
    begin = time.monotonic()

    REDACTION.within(given.encode())

    assert time.monotonic() - begin < 5
