"""Management commands on the test database, with the application's rights."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.db import connection

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`manage.py …` as the application's login, after `provision`."""
    call_command("provision", stdout=StringIO())
    addresses = settings.ENV.database
    ours = {"DATABASE_URL": on_test_database(addresses.url), "REDIS_URL": settings.REDIS_URL}
    if addresses.owner_url != addresses.url:
        ours["DATABASE_OWNER_URL"] = on_test_database(addresses.owner_url)
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **ours},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def on_test_database(url: str) -> str:
    """The address with the name of the test's database in it."""
    return urlsplit(url)._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
