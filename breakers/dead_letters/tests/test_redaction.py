"""Redaction of payloads in many formats."""

import json
import time

import pytest

from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.redaction import REDACTED, Redaction
from breakers.dead_letters.sources import build_key_matcher

GLOBS = ("*password*", "*secret*", "*token*", "*authorization*", "pin")
REDACTION = Redaction(build_key_matcher(GLOBS))


def redact(text):
    return REDACTION.redact_text(text.encode()).decode()


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
        (
            '?token=a {"b": 1, "password": "x"}',
            '?token=[redacted] {"b": 1, "password": "[redacted]"}',
        ),
        ('{"pin": two words }', '{"pin": "[redacted]" }'),
        ("{'password': b'x', 'n': 1}", "{'password': '[redacted]', 'n': 1}"),
        ("{'password': SecretStr('x'), 'n': 1}", "{'password': '[redacted]', 'n': 1}"),
        ("{'password': '''a'b''', 'n': 1}", "{'password': '[redacted]', 'n': 1}"),
        ("Login(user='kim', password='x')", "Login(user='kim', password='[redacted]')"),
        ("Login(password=SecretStr('x'), n=1)", "Login(password=[redacted], n=1)"),
        ('user=kim password="x y" n=1', 'user=kim password="[redacted]" n=1'),
        ("{user=kim, password=x}", "{user=kim, password=[redacted]}"),
        ("a=1,password=x", "a=1,password=[redacted]"),
        ("user[pin]=1&x=1", "user[pin]=[redacted]&x=1"),
        ("pass%77ord=x&n=1", "pass%77ord=[redacted]&n=1"),
        ("p=%7B%22pin%22%3A1%7D", "p=%7B%22pin%22%3A%22%5Bredacted%5D%22%7D"),
        ('{password: "x", n: 1}', '{password: "[redacted]", n: 1}'),
        ('{"password"=>"x"}', '{"password"=>"[redacted]"}'),
        ('{"user\'s password": "x"}', '{"user\'s password": "[redacted]"}'),
        ('{"the \\"password\\"": "x"}', '{"the \\"password\\"": "[redacted]"}'),
        ("POST: Authorization: Bearer x\nHost: y", "POST: Authorization: [redacted]\nHost: y"),
        ("Authorization=Bearer x", "Authorization=[redacted]"),
        ('{"b":"{\\u0022pin\\u0022:1}"}', '{"b":"{\\"pin\\":\\"[redacted]\\"}"}'),
        ('{"u":"?a=1\\u0026token=x"}', '{"u":"?a=1&token=[redacted]"}'),
        ('{"u":"?token=b","n":1}', '{"u":"?token=[redacted]","n":1}'),
        ('{"u":"?a=1\\u0026b=2"}', '{"u":"?a=1\\u0026b=2"}'),
        ('{"said":"wrong password=","n":1}', '{"said":"wrong password=","n":1}'),
        ("axiom:token:17 is gone", "axiom:token:17 is gone"),
        ("password=[redacted] twice", "password=[redacted] twice"),
        ("", ""),
    ],
)
def test_values_under_hidden_keys_are_hidden_and_the_rest_is_as_it_was(given, expected):
    assert redact(given) == expected


def test_json_inside_json_inside_json_is_hidden_and_still_json():
    inner = json.dumps({"secret": ['a"b\\'], "n": 1})
    middle = json.dumps({"password": 'q"\\', "inner": inner})

    redacted = json.loads(redact(json.dumps({"body": middle, "k": 1})))

    middle_shown = json.loads(redacted["body"])
    assert (redacted["k"], middle_shown["password"]) == (1, REDACTED)
    assert json.loads(middle_shown["inner"]) == {"secret": REDACTED, "n": 1}


def test_json_with_bytes_that_are_no_text_is_hidden():
    assert REDACTION.redact_text(b'\xff{"token":"x"}\xfe') == b'\xff{"token":"[redacted]"}\xfe'


def test_field_with_a_hidden_name_is_hidden_also_behind_dots():
    entry = LetterEntry("1-0", ((b"user.password", b"x"), (b"Api_Token", b"y"), (b"name", b"z")))

    redacted = REDACTION.redact_entry(entry)

    assert [value for _, value in redacted.pairs] == [b"[redacted]", b"[redacted]", b"z"]


def test_value_that_was_read_in_part_still_says_that_it_is_longer():
    entry = LetterEntry("1-0", ((b"payload", b'{"a":1'), (b"pin", b"123")), sizes=(9000, 9000))

    assert REDACTION.redact_entry(entry).sizes == (9000, len(REDACTED))


@pytest.mark.parametrize("space", [" " * 5_000, "\n" * 5_000])
@pytest.mark.parametrize("before", ["", "a" * 5_000])
def test_key_is_known_however_long_it_and_the_space_behind_it_are(before, space):
    redacted = redact(f'{{"{before}password"{space}: "x"}}')

    assert redacted == f'{{"{before}password"{space}: "[redacted]"}}'


@pytest.mark.parametrize(
    ("keys", "hidden", "shown"),
    [
        (("*pass word*", "p?n", "a[bc]"), ["My PASS word", "Pin", "ab"], ["passwd", "pins", "ad"]),
        (("*",), ["", "x"], []),
        ((), [], ["", "password"]),
        (("*.key*", "x*y"), ["a.keys", "xay"], ["akeys", "xyz"]),
    ],
)
def test_globs_mean_what_they_mean_elsewhere(keys, hidden, shown):
    hides = build_key_matcher(keys)

    assert [key for key in [*hidden, *shown] if hides(key)] == hidden


def test_own_fields_are_hidden_by_name_and_within():
    entry = LetterEntry(
        "1-0",
        (
            (b"dlq_error", b"login with password=x"),
            (b"dlq_error_type", b"Wrong token=x"),
            (b"dlq_group", b"g pin=1"),
        ),
    )
    by_name = Redaction(build_key_matcher(("dlq_*",)))

    assert REDACTION.error(entry) == "login with password=[redacted]"
    assert REDACTION.error_type(entry) == "Wrong token=[redacted]"
    assert REDACTION.group(entry) == "g pin=[redacted]"
    assert {by_name.error(entry), by_name.error_type(entry), by_name.group(entry)} == {REDACTED}
    assert by_name.error(LetterEntry("1-0", ())) == ""


@pytest.mark.parametrize(
    "given",
    [
        '"\\"' * 300_000,
        '"' * 1_000_000,
        "\\" * 1_000_000,
        '{"password":' * 100_000,
        "password='" * 100_000,
        "a'" * 500_000,
        "a=" * 100_000,
        "a=%22:&" * 30_000,
        "password=( " * 100_000,
        ",".join(f'"key{number}":1' for number in range(90_000)),
        '"password"' + " " * 1_000_000,
        "\\" * 64 + "u0022:" * 100_000,
    ],
)
def test_text_made_to_take_long_takes_no_longer_than_its_length(given):
    begin = time.monotonic()

    REDACTION.redact_text(given.encode())

    assert time.monotonic() - begin < 5
