"""New epochs: permission, publication and audit row."""

import threading
import uuid
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden, InvalidInput
from controlplane.core.http.tests.callers import person
from controlplane.core.roles import ALL_SCOPES
from switches import services
from switches.models import Publication, Switch

REASON = "backup of 02:00 UTC restored, INC-7"
SHELL = system_actor("shell:root")
pytestmark = pytest.mark.django_db


def head() -> Publication:
    return Publication.objects.get(pk=1)


def engaged(key: str = "finance") -> Switch:
    return services.engage(
        scope="segment",
        key=key,
        reason="card payments charged twice",
        expires_in="24h",
        actor=SHELL,
        now=db_now(),
    ).switch


def test_new_epoch_is_another_one_and_its_version_goes_on():
    engaged()
    before = head()
    began = services.begin_epoch(reason=REASON, actor=SHELL, now=db_now())

    after = head()
    assert (after.epoch, after.version) == (began.epoch, began.version)
    assert after.epoch != before.epoch
    assert after.epoch.version == 4
    assert (before.began_version, after.began_version) == (0, after.version)
    assert after.version == before.version + 1
    assert after.published_at > before.published_at
    assert after.registrations == before.registrations


def test_switches_stay_as_they_are_with_their_versions():
    switch = engaged()
    services.begin_epoch(reason=REASON, actor=SHELL, now=db_now())

    found = Switch.objects.get()
    assert (found.state, found.version) == ("engaged", switch.version)
    assert engaged("search").version == head().version == switch.version + 2


def test_time_of_publication_never_goes_back():
    before = head()
    began = services.begin_epoch(
        reason=REASON, actor=SHELL, now=before.published_at - timedelta(hours=1)
    )

    assert began.published_at == before.published_at


def test_trail_says_who_why_and_from_what_to_what():
    before = head()
    services.begin_epoch(reason=f"  {REASON} ", actor=SHELL, now=db_now())

    entry, after = audit.as_row(AuditEntry.objects.get()), head()
    assert entry["action"] == "epoch.began"
    assert entry["target"] == "publication"
    assert entry["reason"] == REASON
    assert entry["actor_name"] == "shell:root"
    assert str(before.epoch) in entry["before"]
    assert str(after.epoch) in entry["after"]
    assert f'"version":{after.version}' in entry["after"]


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_an_admin_may(role):
    before = head()
    with pytest.raises(Forbidden):
        services.begin_epoch(reason=REASON, actor=person(role).as_actor(), now=db_now())

    assert (head().epoch, head().version) == (before.epoch, before.version)
    assert not AuditEntry.objects.exists()


def test_admin_may():
    before = head()
    services.begin_epoch(reason=REASON, actor=person("admin").as_actor(), now=db_now())

    assert head().epoch != before.epoch


def test_no_token_may_whatever_its_scopes():
    token = Actor(type="token", name="all", token_id=1, scopes=ALL_SCOPES)

    with pytest.raises(Forbidden):
        services.begin_epoch(reason=REASON, actor=token, now=db_now())


@pytest.mark.parametrize("reason", ["", "  ", "\u200b", "x" * 2001, "a\x00b"])
def test_reason_that_nobody_can_read_is_refused(reason):
    before = head().epoch
    with pytest.raises(InvalidInput) as caught:
        services.begin_epoch(reason=reason, actor=SHELL, now=db_now())

    assert set(caught.value.errors) == {"reason"}
    assert head().epoch == before


@pytest.mark.django_db(transaction=True)
def test_change_under_way_is_waited_for_and_comes_before():
    done = threading.Event()
    began = []

    def begin() -> None:
        try:
            began.append(services.begin_epoch(reason=REASON, actor=SHELL, now=db_now()))
        finally:
            connection.close()
            done.set()

    with transaction.atomic():
        switch = engaged()
        other = threading.Thread(target=begin)
        other.start()
        assert not done.wait(0.2)  # Blockers are ended after half a second.
    assert done.wait(10)
    other.join()

    assert began[0].version == switch.version + 1


def test_command_begins_and_prints_the_new_one():
    before, output = head(), StringIO()
    call_command("epoch", "begin", "--reason", REASON, stdout=output)

    after = head()
    assert after.epoch != before.epoch
    assert f"epoch {after.epoch}  version {after.version}" in output.getvalue()
    assert AuditEntry.objects.get().actor_name.startswith("shell:")


def test_command_shows_and_changes_nothing():
    before, output = head(), StringIO()
    call_command("epoch", "show", stdout=output)

    assert f"epoch {before.epoch}  version {before.version}" in output.getvalue()
    assert (head().epoch, head().version) == (before.epoch, before.version)
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    "arguments", [[], ["begin"], ["begin", "--reason", " "], ["begin", "--reason"], ["end"]]
)
def test_command_without_what_it_needs_is_refused(arguments):
    before = head()
    with pytest.raises(CommandError):
        call_command("epoch", *arguments)

    assert (head().epoch, head().version) == (before.epoch, before.version)


def test_two_epochs_are_never_the_same():
    epochs = {
        services.begin_epoch(reason=REASON, actor=SHELL, now=db_now()).epoch for _ in range(3)
    }

    assert len(epochs) == 3
    assert all(isinstance(each, uuid.UUID) for each in epochs)
