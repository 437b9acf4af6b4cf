"""Upgrade from the previous release, with data in every table it could fill."""

import json
from contextlib import ExitStack
from urllib.parse import urlsplit

import psycopg
import pytest

from controlplane.backup.tests.places import empty_database
from controlplane.notify.delivery.tests.fake_receiver import fake_receiver
from controlplane.tests import previous
from controlplane.tests.installation import ROOT, wait_until
from controlplane.tests.observed_ramps import PERCENTS, REASON, WHY
from controlplane.tests.previous import manage
from controlplane.tests.rolling_upgrade import Fleet, People, Pollers

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
]
DWELL_SECONDS = 20
MAX_ENGAGE_SECONDS = 3.0
MAX_LATE_SECONDS = 12.0
"""The watchdog runs a tick that is 5 s late; the rest is for a busy machine."""
NOT_OURS = {"django_migrations", "django_content_type", "auth_permission", "core_auditentry"}
"""Tables that an upgrade itself adds rows to."""


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    try:
        return previous.unpack(tmp_path_factory.mktemp("previous"))
    except previous.Missing as missing:
        pytest.skip(f"the previous release is not in this clone: {missing}")


@pytest.fixture(scope="module")
def receiver():
    with fake_receiver() as found:
        yield found


@pytest.fixture(scope="module")
def filled(old, receiver, tmp_path_factory, django_db_setup, django_db_blocker):
    """The name of a database that the previous release filled."""
    url = f"http://127.0.0.1:{receiver.port}/T0P-S3CRET"
    with django_db_blocker.unblock(), empty_database() as variables:
        previous.fill(old, _complete(variables, tmp_path_factory.mktemp("seed")), url)
        yield urlsplit(variables["DATABASE_URL"]).path[1:]


@pytest.fixture
def installed(filled, tmp_path, django_db_blocker):
    """The variables of an installation of the previous release, on a copy of that database."""
    with django_db_blocker.unblock(), empty_database(filled) as variables:
        yield _complete(variables, tmp_path / "shell")


def _complete(variables, folder):
    return {
        **variables,
        "SECRET_KEY": "k" * 60,
        "ALLOWED_HOSTS": "127.0.0.1",
        "MAX_HELD": "500",
        "WEBHOOK_ALLOW": "127.0.0.1/32",
        "SWITCHGEAR_DATA_DIR": str(folder),
    }


def test_upgrade_and_the_way_back_keep_every_row_of_every_table(old, installed):
    url = installed["DATABASE_OWNER_URL"]
    before = previous.read_all(url)

    manage(ROOT, installed, "migrate", "--noinput")
    upgraded = previous.read_all(url)
    intact = manage(ROOT, installed, "audit", "verify")
    for migration in previous.LAST_MIGRATIONS:
        manage(ROOT, installed, "migrate", *migration)
    returned = previous.read_all(url)
    still_intact = manage(old, installed, "audit", "verify")

    assert [name for name, rows in before.items() if not rows] == []
    assert missing_from(upgraded, before) == []
    assert missing_from(returned, before) == []
    assert f"intact: {len(before['core_auditentry'])} rows" in intact
    assert f"intact: {len(before['core_auditentry'])} rows" in still_intact


def missing_from(after, before):
    """Rows of `before` that no row of `after` equals in their columns; columns may be new."""
    missing = []
    for name, rows in before.items():
        columns = sorted(rows[0]) if rows else []
        found = {canonical(row, columns) for row in after.get(name, [])}
        missing += [f"{name}: {row}" for row in rows if canonical(row, columns) not in found]
        if name not in NOT_OURS and len(after.get(name, [])) != len(rows):
            missing.append(f"{name}: {len(rows)} rows became {len(after.get(name, []))}")
    return missing


def canonical(row, columns):
    return json.dumps([row.get(column, "absent") for column in columns], sort_keys=True)


def test_processes_of_both_releases_work_side_by_side(old, installed, receiver, tmp_path):
    scopes = "switches:read,switches:write,ramps:write"
    token = manage(old, installed, "token", "create", "t", "--scopes", scopes).split()[-1]
    fleet = Fleet(tmp_path, installed)
    with ExitStack() as ending:
        ending.callback(fleet.end)
        fleet.start(old)
        polls = ending.enter_context(Pollers(fleet, token, threads=4, a_second=50))
        people = ending.enter_context(People(fleet, token))
        ramp = begin_ramp(people)

        manage(ROOT, installed, "migrate", "--noinput")
        manage(ROOT, installed, "provision")
        until_delivered(people, receiver)
        fleet.roll(ROOT, ["beat"])
        until_delivered(people, receiver)
        late = wait_until(lambda: not late_ticks(installed), 30, lambda: late_ticks(installed))
        fleet.roll(ROOT, ["web-1", "plane-1"])
        until_delivered(people, receiver)
        fleet.roll(ROOT, ["watchdog", "web-2", "plane-2", "worker"])
        until_delivered(people, receiver)
        wait_until(lambda: rows(installed, OVER, ramp), 120)
        seal(installed)
        wait_until(lambda: not rows(installed, PLAIN_URLS, 0), 30)
        until_delivered(people, receiver)
    print(
        f"{polls.statuses.total()} polls, longest {polls.longest:.2f} s;"
        f" {len(people.done)} engaged, longest {people.longest:.2f} s; ticks on time {late:.1f} s"
        " after beat was replaced"
    )
    verdict = manage(ROOT, installed, "audit", "verify")

    assert polls.failures == []
    assert polls.regressions == []
    assert people.failures == []
    assert people.longest < MAX_ENGAGE_SECONDS
    assert rows(installed, OVER, ramp) == [("completed", 0)]
    assert rows(installed, STEPS, ramp) == [(n, "passed") for n in range(len(PERCENTS))]
    assert rows(installed, FAILED, 0) == []
    assert "intact: " in verdict


OVER = (
    "SELECT state, duplicates_stopped FROM core_job"
    " WHERE id = %s AND state IN ('completed', 'failed', 'cancelled')"
)
STEPS = "SELECT index, state FROM core_jobstep WHERE job_id = %s ORDER BY index"
FAILED = """
SELECT id, last_error FROM core_outboxmessage
WHERE id > %s AND state = 'failed' AND destination LIKE 'webhook:%%'
    AND created_at > now() - '1h'::interval
"""
PLAIN_URLS = "SELECT id FROM core_target WHERE id > %s AND webhook_url LIKE 'http%%'"
LATE = """
SELECT name, ran_by, extract(epoch FROM clock_timestamp() - ran_at)::float FROM core_tick
WHERE name = 'outbox.sweep' AND clock_timestamp() - ran_at > make_interval(secs => %s)
"""


def begin_ramp(people):
    status, said = people.post("feature/ramped/engage", {"reason": REASON, "expires_in": "24h"})
    assert status == 200, said
    plan = [{"percent": percent, "dwell_seconds": DWELL_SECONDS} for percent in PERCENTS]
    status, said = people.post("feature/ramped/release", {"justification": WHY, "plan": plan})
    assert status == 202, said
    return json.loads(said)["ramp"]["id"]


def until_delivered(people, receiver):
    """Wait until the receiver has the message of a switch that is engaged from now on."""
    known = len(people.done)
    wait_until(lambda: len(people.done) > known, 30, lambda: people.failures)
    wanted = people.done[-1].encode()
    wait_until(
        lambda: any(wanted in request["body"] for request in receiver.requests),
        60,
        lambda: f"no message of {wanted!r}",
    )


def late_ticks(variables):
    return rows(variables, LATE, MAX_LATE_SECONDS)


def seal(variables):
    """Let the hour be over in which URLs stay plain, and have the tick run now."""
    with psycopg.connect(variables["DATABASE_OWNER_URL"]) as database:
        database.execute("UPDATE django_migrations SET applied = applied - '2h'::interval")
        database.execute("DELETE FROM core_tick WHERE name = 'targets.seal'")


def rows(variables, query, value):
    with psycopg.connect(variables["DATABASE_OWNER_URL"]) as database:
        return database.execute(query, [value]).fetchall()
