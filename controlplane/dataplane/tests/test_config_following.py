"""`/config` follows the registry: commits arrive, and older states never do."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import orjson
from django.db import connection, transaction

from breakers import publication
from breakers.models import Dependency, Override
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.conftest import POLL_SECONDS, Following
from controlplane.dataplane.tests.copies import read_policies
from controlplane.dataplane.tests.lines import wait_until
from switches.models import Publication

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def change(name: str, timeout_ms: int, **more: object) -> int:
    """Register or change `core->name`; return the registry's version."""
    with transaction.atomic():
        registry = publication.lock()
        dependency, _ = Dependency.objects.update_or_create(
            caller="core",
            callee=name,
            defaults={"document": {"timeout_ms": timeout_ms}, **more},
            create_defaults={
                "document": {"timeout_ms": timeout_ms},
                "registered_at": NOW,
                "changed_at": NOW,
                **more,
            },
        )
        return publication.advance(registry, NOW, dependency)


def override(name: str, mode: str = "forced_open") -> int:
    with transaction.atomic():
        registry = publication.lock()
        dependency = Dependency.objects.get(caller="core", callee=name)
        version = publication.advance(registry, NOW, dependency)
        Override.objects.create(
            dependency=dependency,
            mode=mode,
            reason="제공자 장애, INC-7",
            set_by_type="user",
            set_by_name="ann",
            set_at=NOW,
            expires_at=NOW + timedelta(hours=1),
            version=version,
        )
        return version


def version(following: Following, service: str = "core") -> int:
    policies = following.state.policies
    return -1 if policies is None else policies.document_for(service).version


def test_changes_and_overrides_arrive_as_they_are_committed(idle: Following) -> None:
    change("oracle", 100)
    idle.start()
    assert version(idle) == 1

    change("redis", 500)
    changed = override("oracle")
    wait_until(lambda: version(idle) == changed, 3)

    document = orjson.loads(idle.state.policies.document_for("core").body)
    assert document["dependencies"]["core->redis"] == {"timeout_ms": 500, "override": None}
    assert document["dependencies"]["core->oracle"] == {
        "timeout_ms": 100,
        "override": {
            "mode": "forced_open",
            "reason": "제공자 장애, INC-7",
            "expires_at": "2026-11-21T13:00:00.000000Z",
            "version": changed,
        },
    }


def test_default_that_older_clients_refuse_is_left_out(idle: Following) -> None:
    change("oracle", 100, document={"breaker": {"open_seconds": 9, "half_open_max_seconds": 0}})
    change("redis", 100, document={"breaker": {"open_seconds": 9, "half_open_max_seconds": 30}})

    idle.start()

    document = orjson.loads(idle.state.policies.document_for("core").body)["dependencies"]
    assert document["core->oracle"]["breaker"] == {"open_seconds": 9}
    assert document["core->redis"]["breaker"] == {"open_seconds": 9, "half_open_max_seconds": 30}


def test_a_removal_and_an_overrides_end_arrive(following: Following) -> None:
    change("oracle", 100)
    override("oracle")
    with transaction.atomic():
        registry = publication.lock()
        Override.objects.update(ended_at=NOW, ended_why="removed")
        ended = publication.advance(registry, NOW, Dependency.objects.get())
    wait_until(lambda: version(following) == ended, 3)
    document = orjson.loads(following.state.policies.document_for("core").body)
    assert document["dependencies"]["core->oracle"]["override"] is None

    removed = change("oracle", 100, removed_at=NOW)
    wait_until(lambda: version(following) == removed, 3)
    assert orjson.loads(following.state.policies.document_for("core").body)["dependencies"] == {}


def test_what_is_known_by_reports_alone_is_not_told(following: Following) -> None:
    Dependency.objects.create(caller="core", callee="found", registered_at=NOW, changed_at=NOW)

    changed = change("oracle", 100)
    wait_until(lambda: version(following) == changed, 3)

    assert set(following.state.policies.by_caller["core"]) == {"oracle"}


def test_only_what_changed_is_read_again(following: Following) -> None:
    for number in range(50):
        change(f"s{number}", number)
    wait_until(lambda: version(following) == 50, 5)
    before = following.state.policies

    change("s7", 700)
    wait_until(lambda: version(following) == 51, 3)

    after = following.state.policies
    same = [name for name, one in after.by_caller["core"].items()
            if one is before.by_caller["core"][name]]  # fmt: skip
    assert len(same) == 49


def test_a_new_epoch_is_read_anew_whatever_its_version(following: Following) -> None:
    change("oracle", 100)
    wait_until(lambda: version(following) == 1, 3)
    first = following.state.policies

    with transaction.atomic():
        Dependency.objects.update(document={"timeout_ms": 999})  # The same version, other content.
        Publication.objects.update(epoch=uuid4())
    wait_until(lambda: following.state.policies.epoch != first.epoch, 3)

    document = orjson.loads(following.state.policies.document_for("core").body)
    assert document["dependencies"]["core->oracle"]["timeout_ms"] == 999


def test_an_answer_from_the_past_is_refused(following: Following) -> None:
    change("oracle", 100)
    change("oracle", 200)
    wait_until(lambda: version(following) == 2, 3)

    with connection.cursor() as cursor:
        cursor.execute("UPDATE breakers_registry SET version = 1")
        cursor.execute("UPDATE breakers_dependency SET version = 1, document = '{}'")
    state = following.state
    wait_until(lambda: state.policies_age_seconds() - state.age_seconds() > 5 * POLL_SECONDS, 3)

    assert version(following) == 2


def test_a_restart_without_its_database_tells_what_was_told(
    idle: Following, tmp_path: Path
) -> None:
    changed = change("oracle", 100)
    idle.config = replace(idle.config, folder=tmp_path, signing_key=b"key")
    idle.start()
    wait_until(lambda: b"core" in read_policies(tmp_path), 5)
    idle.stop()
    idle.database.cut()

    idle.plane = Plane()
    idle.start()

    assert version(idle) == changed
    assert not idle.state.database_reachable
