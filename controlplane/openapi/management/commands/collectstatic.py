"""`manage.py collectstatic`: collect static files and write the OpenAPI document."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.management.commands import collectstatic

from controlplane.openapi import document


class Command(collectstatic.Command):
    def handle(self, **options: Any) -> str | None:
        summary = super().handle(**options)
        if not options["dry_run"]:
            document.write(Path(settings.STATIC_ROOT))
        return summary
