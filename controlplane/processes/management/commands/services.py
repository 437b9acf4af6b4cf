"""`manage.py services`: the URLs of PostgreSQL and Redis that this installation uses."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from controlplane.core.shell import ShellCommand
from controlplane.environment import Environment


class Command(ShellCommand):
    help = "Print the URLs of PostgreSQL and Redis; the bundled ones must be running."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", choices=sorted(_urls(settings.ENV)), help="print only this URL"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        urls = _urls(settings.ENV)
        if options["name"]:
            self.line(urls[options["name"]])
            return
        for name, url in sorted(urls.items()):
            self.line(f"{name}  {url}")


def _urls(env: Environment) -> dict[str, str]:
    return {
        "database_owner_url": env.database.owner_url,
        "database_url": env.database.url,
        "redis_url": env.redis_url,
    }
