"""Dead letters as JSON, whatever is in them."""

import base64

import orjson

from breakers.dead_letters.letters import presentation
from breakers.dead_letters.letters.entries import LetterEntry, ReadLimits


def letter(*pairs, **options):
    entry = LetterEntry("1700000000000-0", tuple(pairs), **options)
    return presentation.letter_resource(entry, redaction=None, fingerprint="f")


def test_letter_without_metadata_says_null_and_when_it_was_added():
    resource = letter((b"order", b"1"))

    assert resource["fields"] == {"order": "1"}
    assert (resource["error"], resource["error_type"], resource["attempts"]) == (None, None, None)
    assert (resource["group"], resource["original_id"], resource["retry_of"]) == (None, None, None)
    assert resource["failed_at"] == resource["added_at"] == "2023-11-14T22:13:20.000000Z"


def test_value_that_is_no_text_is_shown_as_base64():
    resource = letter((b"blob", b"\xff\x00\x01"), (b"nul", b"a\x00b"))

    assert resource["fields"]["blob"] == {
        "base64": base64.b64encode(b"\xff\x00\x01").decode(),
        "bytes": 3,
    }
    assert resource["fields"]["nul"]["bytes"] == 3


def test_value_longer_than_shown_is_cut_between_characters():
    value = "é".encode() * 3000

    resource = letter((b"long", value[:2047]), sizes=(len(value),))

    assert resource["fields"]["long"] == {"text": "é" * 1023, "bytes": 6000, "truncated": True}
    assert resource["truncated"] is True


def test_name_that_comes_twice_has_a_list():
    assert letter((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))["fields"] == {"a": ["1", "3"], "b": "2"}


def test_what_failing_added_is_shown_behind_five_hundred_fields():
    many = [(b"f%d" % number, b"v") for number in range(500)]

    resource = letter(*many, (b"dlq_error", b"boom"))

    assert (resource["error"], resource["fields"]["dlq_error"]) == ("boom", "boom")
    assert (len(resource["fields"]), resource["fields_total"], resource["truncated"]) == (
        101,
        501,
        True,
    )


def test_any_bytes_at_all_can_be_written_as_json():
    garbage = bytes(range(256))

    resource = letter(
        (garbage, garbage), (b"", b""), (b"dlq_error", garbage), (b"dlq_attempts", b"x")
    )

    assert orjson.loads(orjson.dumps(resource))["attempts"] is None


def test_measure_bounds_the_value():
    fields, whole = presentation.display_fields(
        [(b"a", b"12345")], measure=ReadLimits(value_bytes=3, fields=9, total_bytes=99)
    )

    assert fields == {"a": {"text": "123", "bytes": 5, "truncated": True}}
    assert not whole
