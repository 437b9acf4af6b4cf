"""The table of what a machine may stop."""

from typing import Any

from django.db import migrations
from django.utils import timezone

from switches.trips import default_policies


def install(apps: Any, _editor: object) -> None:
    default_policies.install(apps, timezone.now())


class Migration(migrations.Migration):
    dependencies = [("switches", "0005_rules_trips_reports")]
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
