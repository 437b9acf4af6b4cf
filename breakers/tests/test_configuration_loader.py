"""Tests of `manage.py config load`: atomic, idempotent, and careful with manual edits."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from breakers.models import Channel, Dependency, Registry, Service
from breakers.provision import load_once
from breakers.services import configuration_loader, registry
from controlplane.core import provision
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now

from .registered import ADMIN, breaker, dependency, instance

pytestmark = pytest.mark.django_db

SHIPPED = Path(__file__).parents[2] / "config"
SERVICES = "services: {core: {name: Core}, oracle: {name: Oracle, level: 2}}"
TIMEOUT = "dependencies: {core->oracle: {timeout_ms: 60000, criticality: high}}"
BREAKER = "breakers: {core->oracle: {failure_threshold: 5, window_seconds: 60}}"


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, services=SERVICES, timeout=TIMEOUT, breaker=BREAKER)
    return tmp_path


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def load(folder, *options):
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("config", "load", str(folder), *options, stdout=out, stderr=err)
    except SystemExit as ended:
        return ended.code, out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_shipped_folder_is_loaded_whole_and_the_trail_stays_intact():
    code, said, _ = load(SHIPPED)

    assert code == 0
    assert said.rstrip().endswith("61 new, 0 changed, 0 unchanged.")
    assert (Service.objects.count(), Channel.objects.count()) == (19, 17)
    assert Dependency.objects.count() == 21
    assert audit.verify().intact


def test_second_load_changes_nothing():
    load(SHIPPED)
    rows = AuditEntry.objects.count()

    _, said, _ = load(SHIPPED)

    assert said.rstrip().endswith("0 new, 0 changed, 61 unchanged.")
    assert AuditEntry.objects.count() == rows
    assert Registry.objects.get().version == 1


def test_change_of_a_file_is_shown_and_made(folder):
    load(folder)
    write(folder, breaker=BREAKER.replace("60}", "30}"))

    _, said, _ = load(folder)

    assert said.splitlines()[:3] == [
        "~ dependency core->oracle",
        "    breaker.window_size: 60 → 30",
        "    breaker.window_seconds: 60 → 30",
    ]
    assert registry.find_dependency("core", "oracle").document["breaker"]["window_size"] == 30


def test_dry_run_says_the_same_and_does_nothing(folder):
    code, said, _ = load(folder, "--dry-run")

    assert code == 0
    assert "+ dependency core->oracle" in said
    assert "Dry run: 3 new, 0 changed, 0 unchanged." in said
    assert not Dependency.objects.exists()
    assert not AuditEntry.objects.exists()
    assert Registry.objects.get().version == 0


def test_one_wrong_value_stops_all_of_it_and_is_named(folder):
    write(folder, breaker="breakers: {core->oracle: {failure_threshold: many}}")
    write(folder, services=SERVICES.replace("level: 2", "level: 7"))

    code, _, said = load(folder)

    assert code == 1
    assert "breaker.yaml: core->oracle: failure_count: Must be a whole number" in said
    assert "services.yaml: services: oracle: level: Must be from 1 to 3" in said
    assert "Nothing changed." in said
    assert not Service.objects.exists()


def test_folder_that_is_not_there_is_told(tmp_path):
    code, _, said = load(tmp_path / "nowhere")

    assert code == 1
    assert "This folder doesn't exist." in said


def test_what_was_edited_in_the_console_is_overwritten_and_told(folder):
    load(folder)
    dependency(db_now(), timeout_ms=5000)

    _, said, _ = load(folder)

    assert "~ dependency core->oracle (changed by user:ada on " in said
    assert "    timeout_ms: 5000 → 60000" in said
    assert registry.find_dependency("core", "oracle").document["timeout_ms"] == 60_000


def test_what_was_edited_in_the_console_can_be_kept(folder):
    load(folder)
    dependency(db_now(), timeout_ms=5000)

    _, said, _ = load(folder, "--keep-edited")

    assert "= dependency core->oracle (changed by user:ada on " in said
    assert "1 kept with edits" in said
    assert registry.find_dependency("core", "oracle").document["timeout_ms"] == 5000


def test_what_was_removed_in_the_console_stays_so_if_kept(folder):
    load(folder)
    registry.remove_dependency(caller="core", callee="oracle", actor=ADMIN, now=db_now())

    load(folder, "--keep-edited")

    assert not Dependency.objects.registered().exists()


def test_edit_that_was_loaded_over_is_no_longer_by_hand(folder):
    load(folder)
    dependency(db_now(), timeout_ms=5000)
    load(folder)
    write(folder, timeout=TIMEOUT.replace("60000", "70000"))

    _, said, _ = load(folder, "--keep-edited")

    assert "~ dependency core->oracle\n" in said


def test_what_stands_in_no_file_is_left_alone(folder):
    dependency(db_now(), "core->legacy")

    _, said, _ = load(folder)

    assert "In none of the files, unchanged: dependency core->legacy." in said
    assert registry.find_dependency("core", "legacy").document["timeout_ms"] == 60_000


def test_single_file_changes_only_what_it_is_about(folder, tmp_path):
    load(folder)
    alone = tmp_path / "alone"
    alone.mkdir()
    write(alone, breaker="breakers: {core->oracle: {open_seconds: 7}}")

    load(alone)

    document = registry.find_dependency("core", "oracle").document
    assert (document["timeout_ms"], document["criticality"]) == (60_000, "high")
    assert document["breaker"]["open_seconds"] == 7


def test_dependency_that_a_file_no_longer_names_loses_that_section(folder):
    load(folder)
    write(folder, breaker="breakers: {}")

    load(folder)

    assert registry.find_dependency("core", "oracle").document["breaker"] is None


def test_new_installation_begins_with_the_shipped_folder_once():
    load_once(db_now())
    version = Registry.objects.get().version
    registry.remove_dependency(caller="core", callee="weaver", actor=ADMIN, now=db_now())

    load_once(db_now())

    assert version == 1
    assert Dependency.objects.registered().count() == 20
    assert AuditEntry.objects.order_by("id").first().actor_name == "provision"


def test_installation_that_has_something_is_left_alone():
    dependency(db_now())

    load_once(db_now())

    assert Dependency.objects.count() == 1


def test_provisioning_brings_the_shipped_folder_along():
    provision.run_first_steps(db_now())

    assert Dependency.objects.count() == 21


def status(*options):
    out = io.StringIO()
    call_command("breakers", "status", *options, stdout=out)
    return out.getvalue()


def test_status_tells_the_worst_first():
    now = db_now()
    closed, is_open = dependency(now), dependency(now, "core->vision")
    one = instance(now)
    breaker(closed, one)
    breaker(is_open, one, "open")

    lines = status().splitlines()

    assert lines[0].startswith("core->vision  open       high      1 open")
    assert lines[1].startswith("core->oracle  closed     high      1 closed")
    assert "failures" not in lines[0]


def test_status_as_json_is_the_board():
    dependency(db_now())

    (row,) = json.loads(status("--json"))["results"]

    assert (row["name"], row["state"]) == ("core->oracle", "unknown")


def test_status_of_nothing_says_how_to_begin():
    assert "config load" in status()


def test_folder_with_a_file_that_is_no_text_is_refused(folder):
    (folder / "retry.yaml").write_bytes(b"\xff\xfe\x00")

    code, _, said = load(folder)

    assert code == 1
    assert "retry.yaml: Can't be read" in said


def test_audit_rows_come_last_and_in_order(folder):
    load(folder)

    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == [
        "service.registered",
        "service.registered",
        "dependency.registered",
        "configuration.loaded",
    ]
    assert configuration_loader.is_registry_empty() is False


def test_whole_folder_is_one_version_and_told_once(folder, django_capture_on_commit_callbacks):
    write(folder, timeout="dependencies: {core->oracle: {}, core->vision: {}, core->weaver: {}}")

    with django_capture_on_commit_callbacks() as told:
        load(folder)

    assert Registry.objects.get().version == 1
    assert set(Dependency.objects.values_list("version", flat=True)) == {1}
    assert len(told) == 2, "a wake-up of those that hold a policy, and a note for open pages"


def test_many_dependencies_take_as_many_statements_as_a_few(folder, django_assert_max_num_queries):
    entries = ", ".join(f"core->s{number}: {{}}" for number in range(200))
    write(folder, timeout=f"dependencies: {{core->oracle: {{}}, {entries}}}")

    with django_assert_max_num_queries(30):
        load(folder)

    assert Dependency.objects.count() == 201
    assert audit.verify().intact


def test_same_folder_again_waits_for_other_loads_alone(folder):
    load(folder)

    with CaptureQueriesContext(connection) as asked:
        load(folder)

    locks = [one["sql"] for one in asked if "FOR UPDATE" in one["sql"] or "advisory" in one["sql"]]
    assert locks == [f"SELECT pg_advisory_xact_lock({provision.LOCK})"]


def test_loading_keeps_what_was_counted(folder):
    load(folder)
    Dependency.objects.update(trips_total=7)
    write(folder, timeout=TIMEOUT.replace("60000", "70000"))

    load(folder)

    row = registry.find_dependency("core", "oracle")
    assert (row.trips_total, row.document["timeout_ms"]) == (7, 70_000)
