"""The texts that `make run` prints when it starts, and once the installation is ready."""

from pathlib import Path

import pytest

from controlplane import environment
from controlplane.supervisor import redis
from controlplane.supervisor.run import describe_start, format_welcome

LOG = Path("/data/log/console.log")
RESET = ".venv/bin/python manage.py person password admin"


def test_a_new_password_is_printed_without_advice() -> None:
    account = {"user": "admin", "password": "quiet-harbor", "note": None}

    text = format_welcome(environment.read_environment(), account, LOG)

    assert "Password  quiet-harbor\n" in text
    assert RESET not in text


def test_unprinted_password_comes_with_reset_command() -> None:
    account = {"user": "admin", "password": None, "note": "unchanged"}

    text = format_welcome(environment.read_environment(), account, LOG)

    assert "Password  unchanged\n" in text
    assert RESET in text


def test_without_the_user_admin_the_text_says_who_can_sign_in() -> None:
    account = {"user": None, "password": None, "note": "…"}

    text = format_welcome(environment.read_environment(), account, LOG)

    assert "/\n  Sign in as another admin; the user admin doesn't exist.\n" in text
    assert f"  Log       {LOG}\n" in text
    assert "Lost it?" not in text


@pytest.mark.parametrize(
    ("program", "database_url", "redis_url", "text"),
    [
        ("/bin/redis-server", "", "", "PostgreSQL, Redis and the console"),
        (None, "", "", "PostgreSQL and the console"),
        ("/bin/redis-server", "postgresql://db/x", "", "Redis and the console"),
        ("/bin/redis-server", "", "redis://cache", "PostgreSQL and the console"),
        (None, "postgresql://db/x", "redis://cache", "the console"),
    ],
)
def test_only_what_starts_is_named(
    program: str | None,
    database_url: str,
    redis_url: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis, "find_program", lambda: program)

    assert describe_start({"DATABASE_URL": database_url, "REDIS_URL": redis_url}) == text
