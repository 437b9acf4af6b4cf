"""Allow sealed webhook URLs, whose path often is the secret; going back decrypts them.

Going forward changes no row: a process of the release before, still running, would give up its
messages to a sealed URL for good. The tick `targets.seal` seals them an hour later.
"""

from typing import Any

from django.db import migrations

from controlplane.core import encryption


def unseal(apps: Any, _editor: object) -> None:
    """Decrypt all URLs. Raises `InvalidToken` if `SECRET_KEY` no longer opens one of them."""
    target_model = apps.get_model("core", "Target")
    for target in target_model.objects.filter(webhook_url__startswith=encryption.SEALED_PREFIX):
        target.webhook_url = encryption.decrypt(target.webhook_url, encryption.WEBHOOK_URLS)
        target.save(update_fields=["webhook_url"])


class Migration(migrations.Migration):
    dependencies = [("core", "0021_widen_webhook_url")]
    expands = "going forward changes nothing"
    operations = [migrations.RunPython(migrations.RunPython.noop, unseal)]
