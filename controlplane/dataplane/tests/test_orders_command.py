"""`manage.py dataplane orders`: the orders on disk, without any service."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.dataplane.storage.order_journal import OrderJournal, order_key
from controlplane.dataplane.storage.snapshot_file import SnapshotDisk, signing_key
from controlplane.dataplane.tests.copies import SAVED
from controlplane.dataplane.tests.test_command import ROOT

from .test_order_set import closed, order, withdrawal

SECRET = "a secret of the installation"


def run(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ,
        "SWITCHGEAR_DATA_DIR": str(folder),
        "SECRET_KEY": SECRET,
        "DATABASE_URL": "postgresql://switchgear@127.0.0.1:1/switchgear",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    command = [sys.executable, str(ROOT / "manage.py"), "dataplane", "orders", *options]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def fill(folder: Path) -> None:
    """Store an open order, a withdrawn one and one that the database has closed."""
    snapshot = folder / "snapshot"
    saved = replace(SAVED, closed=closed(4, subject="feature:old"))
    SnapshotDisk(snapshot, signing_key(SECRET)).save(saved)
    journal = OrderJournal(snapshot, (order_key(SECRET),))
    later = order(2, "feature:mail", seconds=5, plane="dp-2")
    journal.write(order(1), later, withdrawal(3, 2, "feature:mail"), order(4, "feature:old"))


@pytest.mark.slow
def test_open_and_withdrawn_orders_are_listed(tmp_path: Path) -> None:
    fill(tmp_path)

    done = run(tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "withdrawn  feature:mail  00000000-0000-0000-0000-000000000002",
        "  ordered 2026-11-28 02:10:05 UTC by user kim on dp-2, for 24h: OpenAI 5xx on completions",
        "  withdrawn 2026-11-28 02:10:00 UTC by user kim on dp-2: false alarm",
        "open  feature:chat  00000000-0000-0000-0000-000000000001",
        "  ordered 2026-11-28 02:10:00 UTC by user kim on dp-1, for 24h: OpenAI 5xx on completions",
    ]


@pytest.mark.slow
def test_json_is_that_of_the_api(tmp_path: Path) -> None:
    fill(tmp_path)

    withdrawn, opened = json.loads(run(tmp_path, "--json").stdout)["results"]

    assert (opened["state"], opened["withdrawal"]) == ("open", None)
    assert (withdrawn["state"], withdrawn["withdrawal"]["reason"]) == ("withdrawn", "false alarm")


@pytest.mark.slow
def test_without_orders_it_says_where_it_looked(tmp_path: Path) -> None:
    done = run(tmp_path)

    assert (
        done.stdout == f"No open or withdrawn emergency orders in {tmp_path}/snapshot/emergency.\n"
    )
    assert not (tmp_path / "snapshot").exists()
