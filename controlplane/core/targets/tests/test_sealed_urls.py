"""Webhooks' URLs are sealed in the database and plain in Python."""

from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from controlplane.core.clock import db_now
from controlplane.core.targets.models import Target

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.org/services/T0/V3rYs3cretPath"
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


def test_migration_seals_what_is_plain_and_back() -> None:
    at = ("core", "0022_seal_webhook_urls")
    history = MigrationLoader(connection).project_state(at).apps
    names = ("pager", "sealed", "none")
    for name in names:
        webhook(name, "" if name == "none" else URL)
    store(URL)
    sealed_before = stored("sealed")

    migration.seal(history, None)

    assert [read(name).webhook_url for name in names] == [URL, URL, ""]
    assert "hooks" not in stored()
    assert stored("sealed") == sealed_before

    migration.unseal(history, None)

    assert [stored(name) for name in names] == [URL, URL, ""]
