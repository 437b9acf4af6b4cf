"""A report on ten thousand open episodes takes little time, and stays small."""

import time

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from switches.report import services
from switches.report.compose import compose
from switches.report.renderer import build_sections
from switches.report.section_rows import MAX_ROWS
from switches.report.tests.house import DUE, MONDAY, SHELL, WEEK, section

pytestmark = pytest.mark.django_db
MANY = 10_000
CROWD = (
    """
    INSERT INTO switches_switch (id, scope, key, owner, description, runbook_url, version,
        registered_at)
    SELECT 'feature:f' || n, 'feature', 'f' || n, '', '', '', 1, %(monday)s
    FROM generate_series(1, %(many)s) n
    """,
    """
    INSERT INTO switches_episode (switch_id, reason, engaged_by_type, engaged_by_name,
        engaged_by_identity, engaged_at, engaged_version, expires_at, permanent, on_expiry,
        allow_percent, salt, overdue_at, acknowledged_by, ended_by, ended_how, justification)
    SELECT 'feature:f' || n, 'checkout slows down and nobody knows why ' || repeat('x', n %% 300),
        'user', 'person-' || n %% 300, 'user:1', %(monday)s + n * interval '1 minute', 1,
        %(monday)s + n * interval '2 minutes', false, 'hold', 0, 's',
        %(monday)s + n * interval '2 minutes', '', '', '', ''
    FROM generate_series(1, %(many)s) n
    """,
    """
    INSERT INTO core_auditentry (id, at, actor_type, actor_name, action, target, reason, before,
        after, request_id, ip, previous_hash, hash)
    SELECT n, %(monday)s + n * interval '1 minute', 'user', 'person-' || n %% 300,
        CASE n %% 2 WHEN 0 THEN 'switch.engaged' ELSE 'switch.extended' END,
        'feature:f' || n %% 2000, '', 'null', 'null', '', '', '0', '0'
    FROM generate_series(1, %(many)s) n
    """,
)


@pytest.fixture(scope="module")
def crowd(module_db):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE core_auditentry DISABLE TRIGGER core_audit_follows")
        for statement in CROWD:
            cursor.execute(statement, {"many": MANY, "monday": MONDAY})
        # As autovacuum does within a minute; without it the planner may expect empty tables.
        cursor.execute("ANALYZE switches_switch, switches_episode, core_auditentry")


def test_it_is_made_with_little_work_and_shows_the_first_rows_of_many(crowd):
    """Processor time and queries are measured, as elapsed time depends on the machine's load."""
    compose(WEEK, DUE)  # Imports, and the first use of each query.

    began = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        content = compose(WEEK, DUE)
    worked = time.process_time() - began

    assert worked < 0.7
    assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) < 33
    assert section(content, "forgotten")["total"] >= MANY * 0.9
    assert section(content, "vague_reasons")["total"] >= MANY * 0.9
    assert all(len(s["rows"]) <= MAX_ROWS for s in content["sections"])
    assert len(orjson.dumps(content)) < 256 * 1024


def test_its_page_and_its_digest_stay_readable(crowd):
    report = services.generate_report(week=WEEK, actor=SHELL, now=DUE)

    sections = {s["slug"]: s for s in build_sections(report.content)}

    assert sections["forgotten"]["more"] == sections["forgotten"]["total"] - MAX_ROWS
    assert len(services._build_facts(report)["line_1"]) < 500
