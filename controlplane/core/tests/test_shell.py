"""Shell output: a line stays a single line, whatever names and reasons contain."""

import io

import pytest
from django.core.management.base import CommandError
from django.db import connection

from controlplane.core import heartbeats
from controlplane.core.errors import Conflict
from controlplane.core.shell import ShellCommand


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("INC-1\nfeature:other  released", "INC-1\\nfeature:other  released\n"),
        ("a\x1b[31mred", "a\\x1b[31mred\n"),
        ("left\u202eright", "left\\u202eright\n"),
        ("line\u2028break", "line\\u2028break\n"),
        ("결제 이중 청구 — 🔥", "결제 이중 청구 — 🔥\n"),
    ],
)
def test_line_escapes_what_would_forge_another(text, printed):
    out = io.StringIO()

    ShellCommand(stdout=out).line(text)

    assert out.getvalue() == printed


def test_errors_are_escaped_as_well():
    class Refused(ShellCommand):
        def handle(self, *args, **options):
            raise Conflict("feature:a is already engaged: INC-1\nfeature:other  released")

    with pytest.raises(CommandError) as refused:
        Refused().execute(force_color=False, no_color=True, skip_checks=True)

    assert str(refused.value).endswith("INC-1\\nfeature:other  released")


@pytest.mark.django_db
def test_a_read_only_database_is_told_in_one_line():
    class Writing(ShellCommand):
        def handle(self, *args, **options):
            heartbeats.record_heartbeat("worker")

    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")

    with pytest.raises(CommandError, match=r"The database is read-only: .*read-only"):
        Writing().execute(force_color=False, no_color=True, skip_checks=True)
