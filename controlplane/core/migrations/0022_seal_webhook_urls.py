"""Seal webhook URLs, whose path often is the secret, with a key derived from `SECRET_KEY`."""

from typing import Any

from django.db import migrations

from controlplane.core import sealing


def seal(apps: Any, _editor: object) -> None:
    for target in _with_url(apps):
        if not target.webhook_url.startswith(sealing.SEALED_PREFIX):
            target.webhook_url = sealing.sealed(target.webhook_url, sealing.WEBHOOK_URLS)
            target.save(update_fields=["webhook_url"])


def unseal(apps: Any, _editor: object) -> None:
    """Decrypt all URLs. Raises `InvalidToken` if `SECRET_KEY` no longer opens one of them."""
    for target in _with_url(apps):
        if target.webhook_url.startswith(sealing.SEALED_PREFIX):
            target.webhook_url = sealing.opened(target.webhook_url, sealing.WEBHOOK_URLS)
            target.save(update_fields=["webhook_url"])


def _with_url(apps: Any) -> Any:
    return apps.get_model("core", "Target").objects.exclude(webhook_url="")


class Migration(migrations.Migration):
    dependencies = [("core", "0021_widen_webhook_url")]
    expands = (
        "the release before can't send to a sealed URL: while it still runs, its workers fail to"
        " post to webhooks, and the outbox tries again by the new ones"
    )
    operations = [migrations.RunPython(seal, unseal)]
