"""The next release takes over, one process after the other, while services poll and people act."""

import json
import os
import shutil
from pathlib import Path

import psycopg
import pytest

from controlplane.backup.tests.places import empty_database
from controlplane.tests.installation import ROOT, wait_until
from controlplane.tests.observed_ramps import PERCENTS, REASON, WHY
from controlplane.tests.previous import manage
from controlplane.tests.rolling_upgrade import Fleet, People, Pollers

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(900),
    pytest.mark.django_db(transaction=True),
]
LEFT_OUT = (".git", ".venv", "var", "node_modules", ".*_cache", "__pycache__", ".hypothesis")
DWELL_SECONDS = 15
A_SECOND = float(os.environ.get("UPGRADE_POLLS", "200"))
NEXT = '''
"""What the next release adds."""

from django.db import migrations


class Migration(migrations.Migration):
    expands = "The release before names its columns when it writes."
    dependencies = [("core", "{last}")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE core_token ADD COLUMN purpose text NOT NULL DEFAULT ''",
            "ALTER TABLE core_token DROP COLUMN purpose",
        ),
    ]
'''


@pytest.fixture
def old():
    """The release that runs: this tree, or the one in UPGRADE_FROM."""
    return Path(os.environ.get("UPGRADE_FROM") or ROOT)


@pytest.fixture
def new(tmp_path, old):
    """The next one: a copy of this tree with one more migration, or this tree after another."""
    if old != ROOT:
        return ROOT
    tree = tmp_path / "next"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    folder = tree / "controlplane" / "core" / "migrations"
    last = max(file.stem for file in folder.glob("0*.py"))
    (folder / "9999_purpose.py").write_text(NEXT.format(last=last))
    return tree


def test_every_process_is_replaced_and_nobody_notices(tmp_path, old, new):
    with empty_database() as variables:
        variables |= {"SECRET_KEY": "k" * 60, "ALLOWED_HOSTS": "127.0.0.1", "MAX_HELD": "500"}
        given = {**variables, "SWITCHGEAR_DATA_DIR": str(tmp_path / "shell")}
        manage(old, given, "migrate", "--noinput")
        manage(old, given, "provision")
        scopes = "switches:read,switches:write,ramps:write"
        token = manage(old, given, "token", "create", "t", "--scopes", scopes).split()[-1]
        fleet = Fleet(tmp_path, variables)
        try:
            fleet.start(old)
            with (
                Pollers(fleet, token, threads=8, a_second=A_SECOND) as polls,
                People(fleet, token) as people,
            ):
                ramp = _ramp(people)
                manage(new, given, "migrate", "--noinput")
                manage(new, given, "provision")
                took = fleet.roll(new)
                wait_until(lambda: _rows(variables, OVER, ramp), 200, lambda: took)
        finally:
            fleet.end()
        steps = _rows(variables, STEPS, ramp)
        over = _rows(variables, OVER, ramp)
        engaged = {switch for (switch,) in _rows(variables, ENGAGED, 0)}
        broken = _rows(variables, BROKEN, 0)

    print(
        f"{polls.statuses.total()} polls in {polls.seconds:.0f} s ({polls.rate:.0f}/s), longest"
        f" {polls.longest:.2f} s, {len(people.done)} changes, ended in {took}"
    )
    assert polls.failures == []
    assert polls.regressions == []
    assert people.failures == []
    assert polls.statuses[200] > 0
    assert len(people.done) > 3
    assert set(people.done) <= engaged
    assert over == [("completed", 0)]
    assert steps == [(index, "passed") for index in range(len(PERCENTS))]
    assert broken == []


OVER = (
    "SELECT state, duplicates_stopped FROM core_job"
    " WHERE id = %s AND state IN ('completed', 'failed', 'cancelled')"
)
STEPS = "SELECT index, state FROM core_jobstep WHERE job_id = %s ORDER BY index"
ENGAGED = "SELECT switch_id FROM switches_episode WHERE id > %s"
BROKEN = """
SELECT a.id FROM core_auditentry a JOIN core_auditentry b ON b.id = a.id + 1
WHERE b.previous_hash <> a.hash AND a.id > %s
"""


def _ramp(people):
    status, said = people.post("feature/ramped/engage", {"reason": REASON, "expires_in": "24h"})
    assert status == 200, said
    plan = [{"percent": percent, "dwell_seconds": DWELL_SECONDS} for percent in PERCENTS]
    status, said = people.post("feature/ramped/release", {"justification": WHY, "plan": plan})
    assert status == 202, said
    return json.loads(said)["ramp"]["id"]


def _rows(variables, query, value):
    with psycopg.connect(variables["DATABASE_OWNER_URL"]) as database:
        return database.execute(query, [value]).fetchall()
