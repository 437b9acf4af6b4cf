"""Webhook URLs are sealed in the database and plain in Python."""

from datetime import datetime, timedelta
from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from controlplane.core.clock import db_now
from controlplane.notify.models.targets import Target
from controlplane.notify.targets import services

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.org/services/T0/V3rYs3cretPath"
AT = ("core", "0022_seal_webhook_urls")
migration = import_module("controlplane.core.migrations.0022_seal_webhook_urls")


def webhook(name: str = "pager", url: str = URL) -> Target:
    return Target.objects.create(
        name=name, kind="channel", address="webhook", webhook_url=url, created_at=db_now()
    )


def stored(name: str = "pager") -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT webhook_url FROM core_target WHERE name = %s", [name])
        return str(cursor.fetchone()[0])


def store(text: str, name: str = "pager") -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE core_target SET webhook_url = %s WHERE name = %s", [text, name])


def read(name: str = "pager") -> Target:
    return Target.objects.get(name=name)


def test_url_is_sealed_however_it_is_written() -> None:
    made = webhook()
    by_create = stored()
    made.save()
    by_save = stored()
    Target.objects.update(webhook_url=URL)

    for text in (by_create, by_save, stored()):
        assert "hooks" not in text
        assert text.startswith("gAAAAA")
    assert read().webhook_url == URL


def test_longest_url_has_room() -> None:
    longest = "https://hooks.example.org/" + "ü" * 474

    webhook(url=longest)

    assert read().webhook_url == longest


def test_target_without_url_is_found_as_before() -> None:
    webhook(url="")

    assert stored() == ""
    assert Target.objects.filter(name="pager", webhook_url="").exists()


def test_url_stored_before_they_were_sealed_reads_as_it_is_and_is_sealed_by_a_save() -> None:
    webhook()
    store(URL)
    target = read()
    assert target.webhook_url == URL

    target.save()

    assert "hooks" not in stored()


def test_url_that_another_key_sealed_reads_as_none_and_is_not_lost(settings) -> None:
    webhook()
    sealed, kept_key = stored(), settings.SECRET_KEY
    settings.SECRET_KEY = "another" * 9
    target = read()
    assert target.webhook_url == ""

    target.description = "changed"
    target.save()

    assert stored() == sealed
    settings.SECRET_KEY = kept_key
    assert read().webhook_url == URL


def test_url_that_a_former_key_sealed_is_read(settings) -> None:
    webhook()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another" * 9

    assert read().webhook_url == URL


def migrated(ago: timedelta) -> datetime:
    """Backdate the migration that allowed sealing; return the present time."""
    now = db_now()
    MigrationRecorder.Migration.objects.filter(app="core", name=AT[1]).update(applied=now - ago)
    return now


def three() -> list[str]:
    """Create targets with a plain URL, with a sealed one and with none."""
    names = ["pager", "sealed", "none"]
    for name in names:
        webhook(name, "" if name == "none" else URL)
    store(URL)
    return names


def test_plain_urls_are_sealed_an_hour_after_the_upgrade() -> None:
    names = three()
    sealed_before = stored("sealed")

    count = services.seal_webhook_urls(migrated(timedelta(hours=1)))

    assert count == 1
    assert stored().startswith("gAAAAA")
    assert stored("sealed") == sealed_before
    assert [read(name).webhook_url for name in names] == [URL, URL, ""]


def test_plain_urls_stay_while_processes_of_the_release_before_may_run() -> None:
    webhook()
    store(URL)

    count = services.seal_webhook_urls(migrated(timedelta(minutes=59)))

    assert count == 0
    assert stored() == URL


def test_going_back_decrypts_all_urls() -> None:
    names = three()

    migration.unseal(MigrationLoader(connection).project_state(AT).apps, None)

    assert [stored(name) for name in names] == [URL, URL, ""]
