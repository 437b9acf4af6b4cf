"""The threshold rules that an installation begins with."""

from typing import Any

from django.db import migrations
from django.utils import timezone

from slo.thresholds import builtin_rules


def install(apps: Any, _editor: object) -> None:
    builtin_rules.install_rules(apps, timezone.now())


class Migration(migrations.Migration):
    dependencies = [("slo", "0001_initial")]
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
