"""The audit trail over HTTP: filters, export, and verification of an export."""

import csv
import io
import json
import tracemalloc
from datetime import UTC, datetime

import pytest
from django.db import connection

from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import api, chain
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import Api, as_role, person, token_text, with_token
from controlplane.core.http.tests.over_asgi import ask

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FIELDS = {"id", "at", "actor", "action", "target", "reason", "before", "after", "request_id"}


def record(action="thing.done", target="thing:1", reason="because of this", **more):
    actor = Actor(type=more.pop("by", "user"), name=more.pop("name", "kim"), request_id="r-1")
    return audit.record(
        actor=actor, action=action, target=target, reason=reason, now=db_now(), **more
    )


def ids(response):
    assert response.status_code == 200, response.content
    return [row["id"] for row in response.json()["results"]]


def exported(api, **params):
    response = api.get("/audit/export", params)
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode(), response


@pytest.fixture
def auditor(db):
    return with_token("audit:read")


@pytest.fixture
def trail(auditor):
    start = audit.AuditEntry.objects.count()
    record("switch.engaged", "segment:finance", "card payments charged twice", after={"v": 1})
    record("switch.released", "segment:finance", "refunded 100% of them", by="token", name="ci")
    record("switch.engaged", "feature:kim", "결제 이중 청구", name="lee")
    return [start + number for number in (1, 2, 3)]


def test_row_has_the_shape_of_the_contract(auditor, trail):
    row = auditor.get("/audit/", {"target": "segment:finance"}).json()["results"][1]

    assert set(row) == FIELDS | {"ip", "hash"}
    assert row["actor"] == {"type": "user", "name": "kim"}
    assert (row["before"], row["after"]) == (None, {"v": 1})
    assert row["at"].endswith("Z")
    assert len(row["hash"]) == 64


@pytest.mark.django_db
def test_row_comes_back_whatever_values_it_holds(auditor):
    odd = {"big": 10**30, "float": 1e16, "nul": "\x00", "lone": "\ud800", "text": "결제 \u202e"}
    record(after=odd)

    assert auditor.get("/audit/", {"action": "thing.done"}).json()["results"][0]["after"] == odd
    assert chain.verify([json.loads(line) for line in exported(auditor)[0].splitlines()]).intact


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"q": "charged"}, [0]),
        ({"q": "CHARGED"}, [0]),
        ({"q": "결제"}, [2]),
        ({"q": "100%"}, [1]),
        ({"q": "1%0"}, []),
        ({"q": "kim"}, [2, 0]),
        ({"actor": "kim"}, [0]),
        ({"actor": "user:kim"}, [0]),
        ({"actor": "token:kim"}, []),
        ({"actor": "token:ci"}, [1]),
        ({"action": "switch.engaged"}, [2, 0]),
        ({"action": "switch"}, []),
        ({"target": "segment:finance"}, [1, 0]),
        ({"target": "segment:finance", "action": "switch.engaged"}, [0]),
        ({"from": "2020-01-01", "action": "switch.engaged"}, [2, 0]),
        ({"to": "2020-01-01T00:00:00Z"}, []),
        ({"from": "2020-01-01T00:00:00 09:00", "to": "2020-01-02"}, []),
        ({"from": "0001-01-01T00:00:00+14:00", "action": "switch.engaged"}, [2, 0]),
        ({"to": "9999-12-31T23:59:59-14:00", "action": "switch.engaged"}, [2, 0]),
        ({"q": "", "action": "", "target": "segment:finance"}, [1, 0]),
    ],
)
def test_filter_finds(auditor, trail, filters, found):
    assert ids(auditor.get("/audit/", filters)) == [trail[number] for number in found]


def test_span_of_time_includes_its_start_and_not_its_end(auditor, trail):
    at = auditor.get("/audit/", {"q": "결제"}).json()["results"][0]["at"]

    assert trail[2] in ids(auditor.get("/audit/", {"from": at}))
    assert trail[2] not in ids(auditor.get("/audit/", {"to": at}))


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-11-21T02:10:00"}, "from"),
        ({"to": "2026-13-01"}, "to"),
        ({"to": "2026-02-30T00:00:00Z"}, "to"),
        ({"from": "2026-11-22", "to": "2026-11-21"}, "to"),
        ({"q": "nul\x00"}, "q"),
        ({"q": "x" * 201}, "q"),
        ({"actor": "nul\x00"}, "actor"),
        ({"target": "x" * 201}, "target"),
    ],
)
@pytest.mark.parametrize("path", ["/audit/", "/audit/export"])
def test_wrong_filter_is_named(auditor, path, filters, field):
    response = auditor.get(path, filters)

    assert response.status_code == 400
    assert field in response.json()["errors"]


def test_exported_lines_verify_as_a_chain(auditor, trail):
    text, response = exported(auditor)

    rows = [json.loads(line) for line in text.splitlines()]
    assert response["Content-Type"] == "application/x-ndjson"
    assert 'filename="switchgear-audit.jsonl"' in response["Content-Disposition"]
    assert [row["id"] for row in rows][-3:] == trail
    assert chain.verify(rows).intact
    rows[-1]["reason"] = "nothing happened"
    assert not chain.verify(rows).intact


def test_export_obeys_the_filters(auditor, trail):
    text, _ = exported(auditor, action="switch.engaged")

    assert [json.loads(line)["id"] for line in text.splitlines()] == [trail[0], trail[2]]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "reason", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']
)
def test_csv_holds_no_formula(auditor, reason):
    record(reason=reason, name=reason)

    text, response = exported(auditor, format="csv")

    last = list(csv.DictReader(io.StringIO(text, newline="")))[-1]
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert last["reason"] == f"'{reason}"
    assert last["actor_name"] == f"'{reason}"


def test_csv_keeps_every_row_whatever_is_in_it(auditor):
    record(reason='a "quoted", text\nof two lines; 결제')

    rows = list(csv.DictReader(io.StringIO(exported(auditor, format="csv")[0], newline="")))

    assert rows[-1]["reason"] == 'a "quoted", text\nof two lines; 결제'
    assert len(rows) == audit.AuditEntry.objects.count()


@pytest.mark.parametrize("file_format", ["xml", "JSONL", "csv "])
def test_unknown_format_is_named(auditor, file_format):
    response = auditor.get("/audit/export", {"format": file_format})

    assert response.status_code == 400
    assert "format" in response.json()["errors"]


def test_long_trail_is_exported_piece_by_piece(auditor, monkeypatch):
    for number in range(25):
        record(target=f"thing:{number}")
    monkeypatch.setattr(audit, "READ_AT_ONCE", 10)
    monkeypatch.setattr(api, "LINES_PER_CHUNK", 4)

    pieces = list(auditor.get("/audit/export").streaming_content)

    rows = [json.loads(line) for line in b"".join(pieces).splitlines()]
    assert len(pieces) > 5
    assert chain.verify(rows).intact
    assert len(rows) == audit.AuditEntry.objects.count()


@pytest.mark.parametrize(
    "end",
    [
        lambda token: tokens.revoke_token(token=token, actor=system_actor("test"), now=db_now()),
        lambda token: people.change_user(
            user=token.owner, actor=system_actor("test"), now=db_now(), is_active=False
        ),
    ],
    ids=["revoked", "owner-deactivated"],
)
def test_export_of_a_token_that_ended_meanwhile_breaks_off(auditor, monkeypatch, end):
    person("admin", "another")
    monkeypatch.setattr(api, "LINES_PER_CHUNK", 2)
    for number in range(5):
        record(target=f"thing:{number}")

    pieces = iter(auditor.get("/audit/export").streaming_content)
    next(pieces)
    end(Token.objects.get())

    with pytest.raises(Forbidden):
        next(pieces)


def test_large_export_does_not_grow_memory(auditor):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE core_auditentry DISABLE TRIGGER core_audit_follows")
    audit.AuditEntry.objects.bulk_create(
        [
            audit.AuditEntry(id=number, at=NOW, action="a.b", target="t", reason="x" * 2000)
            for number in range(10, 4010)
        ],
        batch_size=200,  # The index of words makes one statement for all longer than its timeout.
    )
    response = auditor.get("/audit/export")
    next(response.streaming_content)

    tracemalloc.start()
    size = sum(map(len, response.streaming_content))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert size > 8_000_000
    assert peak < size / 2  # What is read at once, not the whole of it.


@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("error:StreamingHttpResponse must consume")
def test_export_is_streamed_over_asgi_too(monkeypatch):
    monkeypatch.setattr(audit, "READ_AT_ONCE", 10)
    monkeypatch.setattr(api, "LINES_PER_CHUNK", 4)
    text = token_text(person("admin"), ["audit:read"])
    program = with_token("switches:write", owner=person("operator"))
    for number in range(20):
        program.patch(f"/switches/feature/f{number}/", {"owner": "team"})

    answer = ask("GET", "/api/v1/audit/export", {"x-api-key": text})

    assert len(answer.pieces) > 4
    rows = [json.loads(line) for line in answer.body.splitlines()]
    assert len(rows) == audit.AuditEntry.objects.count()
    assert chain.verify(rows).intact


@pytest.mark.django_db
def test_reading_the_trail_takes_its_own_scope():
    other = with_token("switches:read")

    assert other.get("/audit/").status_code == 403
    assert other.get("/audit/export").status_code == 403
    assert Api().get("/audit/export").status_code == 401
    assert as_role("viewer").get("/audit/").status_code == 200
