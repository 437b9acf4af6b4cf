"""The history of a letter, read no further than it is shown."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from breakers.dead_letters import history
from breakers.dead_letters.letters import entries, ids
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.redaction import Redaction
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.sources import build_key_matcher
from breakers.tests.fleet import NOW

pytestmark = pytest.mark.django_db
HIDING = Redaction(build_key_matcher(("*password*",)))


@pytest.fixture
def stream():
    return LetterStream.objects.create(
        server="default", name="axiom:dlq:history", origin="axiom:history", found_at=NOW
    )


def create_departure(stream, entry_id, *, fields=(), size_bytes=100, **given):
    known = {"action": "retry", "state": "done", "by": "user:kim", "reason": "fixed", **given}
    return Departure.objects.create(
        stream=stream, position=ids.to_position(entry_id), fields=entries.pack_pairs(fields),
        size_bytes=size_bytes, intended_at=NOW, done_at=NOW, **known,
    )  # fmt: skip


def test_way_back_leads_through_a_large_letter_that_is_not_unpacked(stream):
    create_departure(stream, "1-0", fields=[(b"dlq_error", b"first")])
    create_departure(
        stream, "2-0", fields=[(b"payload", b"x")], size_bytes=2**30, edited=entries.pack_pairs([]),
        error="second", error_type="Late", retry_of=ids.to_position("1-0"),
    )  # fmt: skip

    with CaptureQueriesContext(
        connection,
    ) as asked:
        events = history.list_events(
            stream, LetterEntry("3-0", ((b"dlq_retry_of", b"2-0"),)), redaction=HIDING
        )

    names = ("kind", "id", "error", "error_type", "edited")
    assert [tuple(map(one.get, names)) for one in events] == [
        ("failed", "1-0", "first", "", None),
        ("retried", "1-0", None, None, False),
        ("failed", "2-0", "second", "Late", None),
        ("retried", "2-0", None, None, True),
        ("failed", "3-0", "", "", None),
    ]
    payloads = [one["sql"] for one in asked if '"breakers_departure"."fields"' in one["sql"]]
    assert len(payloads) == 1  # Of the small one.


def test_edits_of_a_small_letter_are_told_and_its_errors_are_redacted(stream):
    before, after = [(b"payload", b'{"n":1}')], [(b"payload", b'{"n":2}')]
    create_departure(stream, "1-0", fields=before, edited=entries.pack_pairs(after))
    error = b"no password=hunter2 " + "\uac00".encode() * 5000

    failed, retried = history.list_events(
        stream, LetterEntry("1-0", ((b"dlq_error", error),)), redaction=HIDING
    )

    assert failed["error"].startswith("no password=[redacted] \uac00")
    assert len(failed["error"]) == 2048
    assert [(one.path, one.before, one.after) for one in retried["changes"]] == [
        ("payload.n", "1", "2")
    ]
