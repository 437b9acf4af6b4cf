"""The plane follows drills in the database: start, end, and changes of the marks."""

from datetime import timedelta

import pytest
from django.db import connection

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.instances.models import Instance
from controlplane.core.jobs import engine
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_following import A_SECOND, engage
from switches.drills import services
from switches.models import Drill, Publication
from switches.snapshot import SnapshotVersion as Published

SHELL = system_actor("test")
MARKED, OTHER = b"core/canary-1", b"core/canary-2"

pytestmark = pytest.mark.django_db(transaction=True)


def list_switches(following: Following, name: bytes = MARKED) -> list[str]:
    """Return the switches in the document of that instance."""
    copy = following.state.copy
    assert copy is not None
    if copy.drill_snapshot is None:
        return list(copy.entries)
    return list(copy.drill_snapshot.copy_for(name, following.state.wall(), copy).entries)


def version() -> int:
    return Publication.objects.get().version


def in_force() -> Drill:
    """Run a drill of segment:finance, whose marked instance is present, by the job itself."""
    now = db_now()
    services.mark_instances(pattern=MARKED.decode(), actor=SHELL, now=now)
    Instance.objects.create(id=MARKED.decode(), service="core", heard_at=now, first_heard_at=now)
    drill = services.begin_drill(
        scope="segment", key="finance", reason="Before the sale", actor=SHELL, now=now
    )
    engine.run_tick("jobs.turn", db_now())
    drill.refresh_from_db()
    assert drill.engaged_at is not None
    return drill


def cancel(drill: Drill) -> None:
    services.cancel_drill(drill_id=drill.pk, reason="enough", actor=SHELL, now=db_now())


def test_begin_and_end_arrive_under_versions_of_their_own(following: Following) -> None:
    wait_until(lambda: following.state.copy is not None, A_SECOND)
    before = version()

    drill = in_force()
    wait_until(lambda: following.state.status().version == before + 1, A_SECOND)
    assert (list_switches(following), list_switches(following, OTHER)) == (["segment:finance"], [])

    cancel(drill)
    wait_until(lambda: following.state.status().version == before + 2, A_SECOND)
    assert list_switches(following) == list_switches(following, OTHER) == []


def test_marks_changed_meanwhile_arrive_and_others_publish_nothing(following: Following) -> None:
    in_force()
    during = version()
    wait_until(lambda: following.state.status().version == during, A_SECOND)

    services.mark_instances(pattern="core/*", actor=SHELL, now=db_now())
    wait_until(lambda: following.state.status().version == during + 1, A_SECOND)
    assert list_switches(following, OTHER) == ["segment:finance"]

    services.remove_mark(pattern="core/*", actor=SHELL, now=db_now())
    services.remove_mark(pattern=MARKED.decode(), actor=SHELL, now=db_now())
    wait_until(lambda: following.state.status().version == during + 3, A_SECOND)
    assert list_switches(following) == []

    cancel(Drill.objects.get())
    ended = version()
    services.mark_instances(pattern="chat/*", actor=SHELL, now=db_now())
    assert version() == ended


def test_engaged_for_real_is_told_to_all(following: Following) -> None:
    in_force()

    real = engage("finance")
    wait_until(lambda: following.state.status().version == real, A_SECOND)

    assert list_switches(following) == list_switches(following, OTHER) == ["segment:finance"]
    assert following.state.copy is not None
    assert following.state.copy.entries["segment:finance"].on_expiry != "release"


def test_other_changes_keep_the_drill_going(following: Following) -> None:
    in_force()

    other = engage("chat")
    wait_until(lambda: following.state.status().version == other, A_SECOND)

    assert list_switches(following) == ["segment:chat", "segment:finance"]
    assert list_switches(following, OTHER) == ["segment:chat"]


def test_one_that_was_left_in_force_is_not_read_past_its_end(following: Following) -> None:
    drill = in_force()
    Drill.objects.filter(pk=drill.pk).update(ends_by=db_now() - timedelta(seconds=1))

    other = engage("chat")
    wait_until(lambda: following.state.status().version == other, A_SECOND)

    assert following.state.copy is not None
    assert following.state.copy.drill_snapshot is None
    assert list_switches(following) == ["segment:chat"]


def test_restart_from_disk_takes_up_the_drill_when_the_database_answers(
    idle: Following,
) -> None:
    in_force()
    row = Publication.objects.get()

    kept = Copy.render(Published(row.epoch, row.version, row.published_at), [], is_kept=True)
    idle.state.install_copy(kept, 0.0)
    assert list_switches(idle) == []

    idle.start()

    wait_until(lambda: list_switches(idle) == ["segment:finance"], A_SECOND)
    assert idle.state.status().version == row.version


def test_versions_equal_the_audit_rows_that_publish(following: Following) -> None:
    drill = in_force()
    services.mark_instances(pattern="core/*", actor=SHELL, now=db_now())
    engage("chat")
    services.remove_mark(pattern="core/*", actor=SHELL, now=db_now())
    cancel(drill)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (after::jsonb ->> 'version')::int FROM core_auditentry"
            " WHERE after::jsonb ? 'version' ORDER BY id"
        )
        versions = [row[0] for row in cursor.fetchall()]
    assert versions == list(range(1, version() + 1))
