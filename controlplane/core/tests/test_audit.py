"""The audit trail: nothing can be rewritten, and a rewrite by the table's owner is found."""

import json
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from psycopg.types.json import Jsonb

from controlplane.core.actors import system_actor
from controlplane.core.audit import chain, services
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage

ACTOR = system_actor("test")


def write(count, **more):
    for number in range(count):
        with transaction.atomic():
            services.record(
                actor=ACTOR,
                action="thing.done",
                target=f"thing:{number}",
                reason=more.get("reason", "because it had to be done"),
                before=more.get("before"),
                after=more.get("after", {"number": number}),
                now=db_now(),
            )


def as_owner_without_trigger(sql, *params):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE core_auditentry DISABLE TRIGGER USER")
        cursor.execute(sql, params)
        cursor.execute("ALTER TABLE core_auditentry ENABLE TRIGGER USER")


@pytest.mark.django_db
def test_rows_follow_each_other_gaplessly_and_verify():
    write(5)

    assert list(AuditEntry.objects.order_by("id").values_list("id", flat=True)) == [1, 2, 3, 4, 5]
    verdict = services.verify()
    assert verdict.intact
    assert (verdict.rows, verdict.head_id) == (5, 5)


@pytest.mark.django_db
def test_empty_trail_is_intact():
    assert services.verify() == chain.ChainVerdict(0, 0, chain.GENESIS)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE core_auditentry SET reason = 'x'",
        "UPDATE core_auditentry SET reason = 'x' WHERE false",
        "DELETE FROM core_auditentry",
        "TRUNCATE core_auditentry",
    ],
)
def test_even_the_owner_is_refused_by_postgresql(sql):
    write(1)

    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)

    assert services.verify().rows == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sql", "bad"),
    [
        ("UPDATE core_auditentry SET reason = 'nothing happened' WHERE id = 3", 3),
        ("UPDATE core_auditentry SET at = at + interval '1 microsecond' WHERE id = 2", 2),
        ("UPDATE core_auditentry SET actor_name = 'somebody else' WHERE id = 1", 1),
        ("DELETE FROM core_auditentry WHERE id = 3", 4),
        ("UPDATE core_auditentry SET id = 9 WHERE id = 5", 9),
    ],
)
def test_tampering_past_the_trigger_is_found_at_the_first_bad_row(sql, bad):
    write(5)

    as_owner_without_trigger(sql)

    verdict = services.verify()
    assert verdict.bad_id == bad
    assert verdict.problem


@pytest.mark.django_db
def test_a_trail_rewritten_and_rehashed_is_found_by_its_anchor():
    write(3)
    published = services.record_anchor(actor=ACTOR, now=db_now())
    rows = list(services.read_trail())
    rows[1]["reason"] = "nothing happened"
    for before, row in zip([None, *rows], rows, strict=False):
        row["previous_hash"] = before["hash"] if before else chain.GENESIS
        row["hash"] = chain.hash_row(row)

    assert chain.verify(rows).intact
    assert chain.verify(rows, {published.id: published.hash}).bad_id == published.id
    assert chain.verify(rows[:2], {published.id: published.hash}).bad_id == published.id


@pytest.mark.django_db
def test_any_text_and_any_number_verify_after_the_round_trip():
    write(
        1,
        reason="결제 이중 청구 — \U0001f525 \u202e rtl \x07",
        after={"big": 10**30, "float": 1e16, "tiny": 5e-324, "nul": "\x00", "lone": "\ud800"},
    )

    assert services.verify().intact


@pytest.mark.django_db
def test_record_outside_a_transaction_is_refused(monkeypatch):
    with pytest.raises(transaction.TransactionManagementError):
        _outside_any_transaction()


def _outside_any_transaction():
    failures = []

    def attempt():
        try:
            services.record(actor=ACTOR, action="a.b", target="t", now=None)
        except transaction.TransactionManagementError as error:
            failures.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    raise failures[0]


@pytest.mark.django_db(transaction=True)
def test_parallel_writers_make_one_chain():
    def writer():
        write(10)
        connection.close()

    threads = [threading.Thread(target=writer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    verdict = services.verify()
    assert verdict.intact
    assert verdict.rows == 80


@pytest.mark.django_db
def test_export_verifies_offline_and_a_changed_line_does_not(tmp_path, capsys):
    write(3)
    call_command("audit", "export")
    lines = capsys.readouterr().out.splitlines()
    whole, forged = tmp_path / "whole.jsonl", tmp_path / "forged.jsonl"
    whole.write_text("\n".join(lines))
    row = json.loads(lines[1]) | {"reason": "nothing happened"}
    forged.write_text("\n".join([lines[0], json.dumps(row), lines[2]]))

    call_command("audit", "verify", "--file", str(whole))
    assert "intact: 3 rows" in capsys.readouterr().out

    with pytest.raises(SystemExit) as ended:
        call_command("audit", "verify", "--file", str(forged))
    assert ended.value.code == 1
    assert "row 2" in capsys.readouterr().err


@pytest.mark.django_db
def test_verify_with_a_malformed_file_or_anchor_says_so(tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text("[1, 2]\n")

    with pytest.raises(CommandError, match="line 1"):
        call_command("audit", "verify", "--file", str(broken))
    with pytest.raises(CommandError, match="ID:HASH"):
        call_command("audit", "verify", "--anchor", "x:y")


@pytest.mark.django_db
def test_csv_export_defuses_formulas(capsys):
    write(1, reason="=HYPERLINK(1)")

    call_command("audit", "export", "--format", "csv")

    assert "'=HYPERLINK(1)" in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize("changed", [{"id": 2**63 - 1}, {"id": 2}, {"previous_hash": "f" * 64}])
def test_row_that_does_not_follow_the_last_is_refused_by_postgresql(changed):
    write(2)
    head = AuditEntry.objects.get(id=2)
    row = {"id": 3, "previous_hash": head.hash, "at": head.at, "hash": "0" * 64, **changed}

    with pytest.raises(DatabaseError, match="does not follow row 2"), transaction.atomic():
        AuditEntry.objects.bulk_create([AuditEntry(**row)])

    write(1)
    assert services.verify().rows == 3


@pytest.mark.django_db
def test_row_that_follows_one_of_a_temporary_table_of_that_name_is_refused():
    """Names are looked up among temporary tables first, which the application may make."""
    write(1)

    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE core_auditentry (id bigint, hash text)")
        cursor.execute("INSERT INTO core_auditentry VALUES (%s, repeat('f', 64))", [2**63 - 2])
        insert = (
            "INSERT INTO public.core_auditentry SELECT (jsonb_populate_record(last, %s)).*"
            " FROM public.core_auditentry AS last"
        )
        row = Jsonb({"id": 2**63 - 1, "previous_hash": "f" * 64})
        with pytest.raises(DatabaseError, match="does not follow row 1"), transaction.atomic():
            cursor.execute(insert, [row])


@pytest.mark.django_db
def test_command_tells_a_trail_cut_after_the_last_round(capsys):
    write(5)
    services.verify_next_rows(db_now())
    as_owner_without_trigger("DELETE FROM core_auditentry WHERE id > 3")

    with pytest.raises(SystemExit) as ended:
        call_command("audit", "verify")

    assert ended.value.code == 1
    assert "row 5: an anchored row is missing" in capsys.readouterr().err


@pytest.mark.django_db
def test_command_tells_a_trail_cut_before_an_announced_anchor(capsys):
    write(2)
    facts = {"id": 5, "hash": "a" * 64}
    OutboxMessage.objects.create(
        event="audit.anchored",
        event_key="audit:5",
        destination="slack",
        payload=facts,
        next_attempt_at=db_now(),
        created_at=db_now(),
    )

    with pytest.raises(SystemExit):
        call_command("audit", "verify")

    assert "row 5: an anchored row is missing" in capsys.readouterr().err


@pytest.mark.django_db
def test_command_says_what_it_did_not_check(capsys):
    write(3)

    call_command("audit", "verify")

    output = capsys.readouterr()
    assert output.out.startswith("intact: 3 rows")
    assert "Not checked: whether rows after row 3 were deleted" in output.err


@pytest.mark.parametrize("starts", ["=", "@", "＝", "＋", "－", "＠"])
def test_formulas_are_defused_also_in_fullwidth(starts):
    row = dict.fromkeys(services.COLUMNS, f"{starts}cmd")

    _header, cells = services.build_csv_rows([row])

    assert set(cells) == {f"'{starts}cmd"}
