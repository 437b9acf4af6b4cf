"""`manage.py person`: create, list, unlock and deactivate people from the server's shell."""

import secrets
from argparse import ArgumentParser
from typing import Any

from axes.utils import reset
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import Case, When

from controlplane.accounts.authentication import codes, factors, throttle
from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.models.people import User
from controlplane.accounts.people import deactivation
from controlplane.accounts.people import services as people
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.roles import Role
from controlplane.core.shell import ShellCommand, shell_actor

MAX_LISTED = 500


class Command(ShellCommand):
    help = "Create and list people, and help those who can't sign in. Every change is audited."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("list", help="show people, admins first")
        create = commands.add_parser("create", help="create a person; prints the first password")
        create.add_argument("name")
        create.add_argument("--role", choices=[role.value for role in Role], default="viewer")
        for command, does in (
            ("password", "print a password to change at the next sign-in; ends their sessions"),
            ("unlock", "reset their failed sign-in attempts"),
            ("reset-factors", "remove their second factors; ends their sessions"),
            ("revoke-emergency-code", "revoke their emergency code"),
            ("deactivate", "end their sessions and stop their tokens"),
            ("activate", "allow them to sign in again"),
        ):
            commands.add_parser(command, help=does).add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, options["command"].replace("-", "_"))(options)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error

    def list(self, options: dict[str, Any]) -> None:
        strength = Case(*(When(role=role, then=place) for place, role in enumerate(Role)))
        users = User.objects.order_by("-is_active", strength.desc(), "username")
        for user in users[:MAX_LISTED]:
            state = "active" if user.is_active else "deactivated"
            self.line(f"{user.username:24} {user.role:9} {state:12} {user.display_name}".rstrip())
        if users.count() > MAX_LISTED:
            self.stderr.write(f"Only the first {MAX_LISTED} are shown. The page People lists all.")

    def create(self, options: dict[str, Any]) -> None:
        password, name, role = secrets.token_urlsafe(15), options["name"], options["role"]
        user = people.create_user(
            username=name,
            password=password,
            must_change_password=True,
            role=role,
            actor=shell_actor(),
            now=db_now(),
        )
        self._print_password(user, password, "first password")

    def password(self, options: dict[str, Any]) -> None:
        user, password = _find_user(options), secrets.token_urlsafe(15)
        people.set_password(
            user=user, password=password, must_change=True, actor=shell_actor(), now=db_now()
        )
        self._print_password(user, password, "new password")

    @transaction.atomic
    def unlock(self, options: dict[str, Any]) -> None:
        user = _find_user(options)
        count = reset(username=user.username) + reset(username=throttle.get_confirmation_name(user))
        count += codes.reset_failures(user)
        target = f"user:{user.username}"
        audit.record(actor=shell_actor(), action="user.unlocked", target=target, now=db_now())
        self.line(f"{user.username} can try again ({count} failed attempts cleared)")

    def reset_factors(self, options: dict[str, Any]) -> None:
        user = _find_user(options)
        factors.remove_all(user=user, actor=shell_actor(), now=db_now())
        self.line(f"{user.username} second factors removed, all sessions ended")

    def revoke_emergency_code(self, options: dict[str, Any]) -> None:
        user = _find_user(options)
        is_revoked = emergency_codes.revoke_code(user=user, actor=shell_actor(), now=db_now())
        self.line(f"{user.username} " + ("emergency code revoked" if is_revoked else "has no code"))

    def deactivate(self, options: dict[str, Any]) -> None:
        user = _find_user(options)
        deactivation.deactivate_user(user=user, heir=None, actor=shell_actor(), now=db_now())
        self.line(f"{user.username} deactivated: sessions ended, tokens stopped")

    def activate(self, options: dict[str, Any]) -> None:
        user = _find_user(options)
        people.change_user(user=user, actor=shell_actor(), now=db_now(), is_active=True)
        self.line(f"{user.username} can sign in")

    def _print_password(self, user: User, password: str, label: str) -> None:
        """Print the password alone on stdout, so that scripts can read it."""
        self.stderr.write(
            f"{user.username}: the {label}, shown only once, to be changed at the next sign-in:"
        )
        self.line(password)


def _find_user(options: dict[str, Any]) -> User:
    name = User.normalize_username(options["name"])
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotFound(f"No person is named {name}. `manage.py person list` lists all.")
    return user
