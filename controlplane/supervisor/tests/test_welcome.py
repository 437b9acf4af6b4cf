"""The text that `make run` prints once the installation is ready."""

from pathlib import Path

from controlplane import environment
from controlplane.supervisor.run import format_welcome

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
