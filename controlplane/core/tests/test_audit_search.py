"""The search in the audit trail: by an index where a text is long enough, bounded where not."""

import base64
import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.core.actors import system_actor
from controlplane.core.audit import search
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import browser_of, person, with_token

SEGMENT = 1 << search.SEGMENT_BITS


def entry(number, reason, action="thing.done"):
    return AuditEntry(
        id=number,
        at=timezone.now(),
        actor_type="user",
        actor_name="kim",
        action=action,
        target="thing:1",
        reason=reason,
        previous_hash="0" * 64,
        hash="0" * 64,
    )


def add_past_chain(entries):
    """Rows that don't follow each other, so that they can be far apart."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE core_auditentry DISABLE TRIGGER core_audit_follows")
        AuditEntry.objects.bulk_create(entries)
        cursor.execute("ALTER TABLE core_auditentry ENABLE TRIGGER core_audit_follows")


def add(reasons):
    """Rows by id, with their reasons."""
    add_past_chain([entry(number, reason) for number, reason in reasons.items()])


def search_ids(api, **params):
    answer = api.get("/audit/", params)
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


@pytest.fixture
def auditor(db):
    return with_token("audit:read")


@pytest.fixture
def spread(auditor):
    """Rows in four segments; every one but the last in its own."""
    base = SEGMENT * 10
    ids = [base + 5, base + SEGMENT - 1, base + SEGMENT, base + 3 * SEGMENT]
    add(dict.fromkeys(ids, "Zebra crossing is closed") | {base + 7: "nothing of the kind"})
    return ids


def test_text_is_found_in_every_segment_newest_first(auditor, spread):
    assert search_ids(auditor, q="zebra") == spread[::-1]


def test_pages_meet_at_segments_in_both_directions(auditor, spread):
    first = auditor.get("/audit/", {"q": "zebra", "limit": 3}).json()
    second = auditor.client.get(first["next"], headers=auditor.headers).json()
    back = auditor.client.get(second["previous"], headers=auditor.headers).json()

    assert [row["id"] for row in first["results"]] == spread[:0:-1]
    assert [row["id"] for row in second["results"]] == spread[:1]
    assert (second["next"], back["results"]) == (None, first["results"])


def exported(api, **params):
    lines = b"".join(api.get("/audit/export", params).streaming_content).splitlines()
    return [json.loads(line)["id"] for line in lines]


def test_export_finds_a_text_by_the_index_page_by_page(auditor, spread, monkeypatch):
    monkeypatch.setattr(audit, "READ_AT_ONCE", 2)

    with CaptureQueriesContext(connection) as queries:
        ids = exported(auditor, q="zebra")

    assert ids == spread
    searches = [one["sql"] for one in queries if "zebra" in one["sql"].lower()]
    assert len(searches) == 2
    assert all("core_audit_trigrams" in sql for sql in searches)


def test_export_finds_a_short_text_in_old_rows_too(auditor, spread, monkeypatch):
    monkeypatch.setattr(audit, "READ_AT_ONCE", 2)

    assert exported(auditor, q="ze") == spread
    assert search_ids(auditor, q="ze") == spread[-1:]


def test_other_filters_narrow_what_is_found(auditor, spread):
    add_past_chain([entry(spread[-1] + 1, "zebra again", action="thing.undone")])

    assert search_ids(auditor, q="zebra", action="thing.undone") == [spread[-1] + 1]
    assert search_ids(auditor, q="zebra", actor="user:lee") == []


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("결제 이중 청구", "이"),
        ("Straße gesperrt", "STRASSE" if "ß".upper() == "ß" else "straße"),
        ("Ärger mit Öl", "ärger"),
        ("100% of_it \\ gone", "100% of_it \\"),
        ("İstanbul ofisi", "İstanbul"),
        ("emoji 🦓 here", "🦓"),
    ],
)
def test_text_in_any_alphabet_is_found_as_without_the_index(auditor, reason, text):
    add({SEGMENT * 20: reason, SEGMENT * 21: "something else"})
    expected = AuditEntry.objects.filter(search.match_text(text)).order_by("-id")

    assert search_ids(auditor, q=text) == [row.pk for row in expected] == [SEGMENT * 20]


def test_wildcards_in_a_text_stand_for_themselves(auditor):
    add({SEGMENT * 20: "100 percent of it"})

    assert search_ids(auditor, q="100%") == []


def test_short_text_is_looked_for_among_the_newest_and_the_answer_says_so(auditor):
    newest = SEGMENT * 30
    edge = newest - search.MAX_SCANNED
    add({edge: "zz far away", edge + 1: "zz near", newest: "zz here"})

    answer = auditor.get("/audit/", {"q": "zz"}).json()

    assert [row["id"] for row in answer["results"]] == [newest, edge + 1]
    assert answer["searched_newest"] == search.MAX_SCANNED
    assert "searched_newest" not in auditor.get("/audit/", {"q": "zz here"}).json()


def test_search_reads_the_index(auditor, spread):
    rows = AuditEntry.objects.order_by("-id")
    sql, params = search.build_segment_query(
        rows, "zebra", ascending=False, position=None, limit=51
    )

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql}", params)
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "Bitmap Index Scan on core_audit_search" in plan


def test_page_finds_the_same_and_says_when_it_looked_at_the_newest_only(auditor, spread):
    browser = browser_of(person())

    whole = browser.get("/audit/", {"q": "zebra"}).content.decode()
    short = browser.get("/audit/", {"q": "ze"}).content.decode()

    assert whole.count("Zebra crossing is closed") >= len(spread)
    assert "only the newest" not in whole
    assert "Searched only the newest 20000 rows" in short


def test_new_entry_is_found_at_once(auditor):
    actor = system_actor("test")
    row = audit.record(
        actor=actor, action="thing.done", target="thing:9", reason="Quokka", now=timezone.now()
    )

    assert search_ids(auditor, q="quokka") == [row.pk]


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        (["next", 2**62], "all"),
        (["next", 2**63 + 1], "all"),
        (["previous", -(2**62)], "all"),
        (["previous", -(2**63)], "all"),
        (["previous", 2**62], "none"),
        (["previous", 2**63 + 1], "none"),
        (["next", -(2**62)], "none"),
        (["next", -(2**63)], "none"),
    ],
)
def test_cursor_far_outside_the_trail_searches_no_segments_there(auditor, spread, cursor, expected):
    with connection.cursor() as statement:
        statement.execute("SET LOCAL statement_timeout = '3s'")

    rows = search_ids(auditor, q="zebra", cursor=cursor_of(*cursor))

    assert rows == (spread[::-1] if expected == "all" else [])


def cursor_of(direction, position):
    return base64.urlsafe_b64encode(json.dumps([direction, position]).encode()).decode()
