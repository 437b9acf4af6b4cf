"""Databases and programs for tests of backups."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.management import call_command

from controlplane.backup import pg_programs
from controlplane.core.tests.processes import ROOT, on_test_database
from controlplane.tests.installation import wait_until


def source_url() -> str:
    """The test's own database, as its owner."""
    return on_test_database(settings.ENV.database.owner_url)


def stopped(name: str) -> None:
    """A switch engaged in the test's database."""
    reason = "OpenAI 5xx on completions since 02:10"
    which = ("--feature", name, "--for", "24h", "--reason", reason)
    call_command("killswitch", "engage", *which, stdout=StringIO())


@contextmanager
def empty_database(template: str = "template1") -> Iterator[dict[str, str]]:
    """Create a database, or copy `template`; yields the variables that point the product to it."""
    name = f"restored_{secrets.token_hex(4)}"
    addresses = settings.ENV.database
    with psycopg.connect(source_url(), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield {
            "DATABASE_URL": urlsplit(addresses.url)._replace(path=f"/{name}").geturl(),
            "DATABASE_OWNER_URL": urlsplit(addresses.owner_url)._replace(path=f"/{name}").geturl(),
            "REDIS_URL": settings.REDIS_URL,
        }
    finally:
        wait_until(lambda: _dropped(name), 60)


def _dropped(name: str) -> bool:
    """Drop the database if unused; without force, because the owner may not end sessions."""
    try:
        with psycopg.connect(source_url(), autocommit=True) as owner:
            owner.execute(f"DROP DATABASE {name}")
    except psycopg.errors.ObjectInUse:
        return False
    return True


def run(*arguments: str, quiet: bool = False, **variables: str) -> "subprocess.Popen[str]":
    """`manage.py …` as a process, to be waited for, or killed."""
    stream = subprocess.DEVNULL if quiet else subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=stream,
        stderr=stream,
        text=True,
    )


def manage(*arguments: str, **variables: str) -> tuple[int, str, str]:
    """Run a management command; return its exit code, output and errors."""
    process = run(*arguments, **variables)
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def program(folder: Path, name: str, lines: str) -> str:
    """Return a PATH on which `name` is a shell script of `lines`; $REAL is the real program.

    With `--version` the script answers like the real program.
    """
    real = pg_programs.find(name, at_least=18)
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(
        f'#!/bin/sh\nREAL="{real}"\n[ "$1" = --version ] && exec "$REAL" --version\n{lines}\n'
    )
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
