"""The escalation matrix with nobody in it yet, and the route to Slack."""

from typing import Any

from django.db import migrations
from django.utils import timezone

from controlplane.core import first_targets as defaults


def install(apps: Any, _editor: object) -> None:
    defaults.create_targets(apps, timezone.now())


class Migration(migrations.Migration):
    dependencies = [("core", "0006_notifications")]
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
