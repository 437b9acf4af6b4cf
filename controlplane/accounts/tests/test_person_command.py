"""`manage.py person`: account recovery by the shell, with audit rows."""

from datetime import timedelta
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from axes.models import AccessAttempt
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.management.commands import person
from controlplane.accounts.management.commands.person import Command
from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.tokens import Token
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import MODEL_BACKEND, token_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def kim():
    return User.objects.create_user("kim", "correct horse battery", role="admin")


def signs_in(name, password):
    client = Client()
    client.post("/sign-in/", {"username": name, "password": password})
    return "_auth_user_id" in client.session


def last_row():
    entry = AuditEntry.objects.order_by("-id").first()
    return entry.action, entry.target, entry.actor_name.split(":")[0]


def printed(capsys):
    return capsys.readouterr().out.splitlines()[-1]


def test_one_who_was_made_signs_in_with_the_printed_password(capsys):
    call_command("person", "create", "rescue", "--role", "admin")

    assert last_row() == ("user.created", "user:rescue", "shell")
    assert signs_in("rescue", printed(capsys))
    rescue = User.objects.get(username="rescue")
    assert (rescue.role, rescue.must_change_password) == ("admin", True)


def test_a_new_password_ends_the_old_one_and_its_sessions(kim, capsys):
    Client().force_login(kim, backend=MODEL_BACKEND)

    call_command("person", "password", "kim")

    assert not BrowserSession.objects.filter(user=kim).exists()
    assert not signs_in("kim", "correct horse battery")
    assert signs_in("kim", printed(capsys))
    assert User.objects.get(username="kim").must_change_password
    assert AuditEntry.objects.filter(action="user.password_set", target="user:kim").count() == 1


def test_one_who_was_locked_out_may_try_again(kim):
    for _ in range(8):
        assert not signs_in("kim", "wrong")
    assert not signs_in("kim", "correct horse battery")

    call_command("person", "unlock", "kim")

    assert last_row() == ("user.unlocked", "user:kim", "shell")
    assert not AccessAttempt.objects.exists()
    assert signs_in("kim", "correct horse battery")


def test_one_without_a_phone_comes_in_without_it(kim):
    Authenticator.objects.create(user=kim, type=Authenticator.Type.TOTP, data={"secret": "x"})
    assert not signs_in("kim", "correct horse battery")

    call_command("person", "reset-factors", "kim")

    assert AuditEntry.objects.filter(action="factor.reset", target="user:kim").exists()
    assert signs_in("kim", "correct horse battery")


def test_an_emergency_code_that_got_lost_is_revoked(kim, capsys):
    emergency_codes.create_code(user=kim, actor=kim.as_actor(), now=db_now())

    call_command("person", "revoke-emergency-code", "kim")
    assert printed(capsys) == "kim emergency code revoked"
    assert last_row() == ("emergency_code.revoked", "user:kim", "shell")
    assert emergency_codes.get_current(kim) is None

    call_command("person", "revoke-emergency-code", "kim")
    assert printed(capsys) == "kim has no code"


def test_who_is_deactivated_is_out_until_activated(kim):
    User.objects.create_user("lee", role="admin")
    text = token_text(kim, ["switches:read"], lifetime=timedelta(days=1))

    call_command("person", "deactivate", "kim")
    assert not signs_in("kim", "correct horse battery")
    assert not Token.objects.usable(db_now()).filter(prefix=text.split("_")[1]).exists()

    call_command("person", "activate", "kim")
    assert signs_in("kim", "correct horse battery")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["password", "nobody"], "No person is named nobody"),
        (["create", "kim"], "kim already exists"),
        (["create", "two words"], "valid username"),
        (["deactivate", "kim"], "last active admin"),
    ],
)
def test_what_can_not_be_is_one_clear_line(kim, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("person", *arguments)


def test_the_list_has_admins_first_and_those_who_left_last(kim, capsys):
    User.objects.create_user("abe", role="viewer")
    User.objects.create_user("gone", role="admin", is_active=False)

    call_command("person", "list")

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["kim", "abe", "gone"]


def test_a_long_list_says_that_there_are_more_and_has_the_admins(monkeypatch, kim, capsys):
    monkeypatch.setattr(person, "MAX_LISTED", 2)
    for name in ("abe", "ben", "eve"):
        User.objects.create_user(name, role="viewer")

    call_command("person", "list")

    output = capsys.readouterr()
    assert [line.split()[0] for line in output.out.splitlines()] == ["kim", "abe"]
    assert "Only the first 2" in output.err


@pytest.mark.parametrize("name", ["createsuperuser", "changepassword"])
def test_what_goes_past_the_trail_says_what_to_use_instead(name):
    with pytest.raises(CommandError, match=r"manage\.py person"):
        call_command(name)


def test_a_database_without_tables_is_one_line():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE core_user RENAME TO core_user_of_before")

    with pytest.raises(CommandError, match=r"manage\.py migrate"):
        call_command("person", "list")


def test_what_a_terminal_shows_of_a_password_has_no_colour(kim, monkeypatch):
    monkeypatch.setattr("django.core.management.color.supports_color", lambda: True)
    command = Command(stdout=Terminal(), stderr=Terminal())

    call_command(command, "password", "kim")

    assert "\x1b" not in command.stdout._out.getvalue() + command.stderr._out.getvalue()


class Terminal(StringIO):
    def isatty(self):
        return True
