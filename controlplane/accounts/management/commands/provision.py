"""`manage.py provision`: as database owner, grant the application's rights and create an admin."""

import json
import os
import secrets
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import ProgrammingError, transaction

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.core import provision
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.provision import ACTOR, take_lock
from controlplane.core.roles import Role
from controlplane.core.shell import ShellCommand

ADMIN = "admin"


class Command(ShellCommand):
    help = (
        "Grant database privileges to the application and create the first admin; prints one line"
        " of JSON."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        role = settings.DATABASE_RUNTIME_ROLE
        try:
            if settings.ENV.database.assume_role:
                provision.make_role(role)
            provision.grant_rights(role)
        except ProgrammingError as error:
            problem = str(error).splitlines()[0]
            raise CommandError(
                f"The database role {role}, which the application uses, can't be set up: {problem}."
                f" Have a superuser create it (and GRANT {role} to the owner's login if both use"
                " one login), then try again."
            ) from error
        chosen = os.environ.get("SWITCHGEAR_ADMIN_PASSWORD", "")
        password, note = ensure_admin(chosen, db_now())
        provision.run_first_steps(db_now())
        user = ADMIN if User.objects.filter(username=ADMIN).exists() else None
        self.line(json.dumps({"user": user, "password": password, "note": note}))


@transaction.atomic
def ensure_admin(chosen_password: str, now: datetime) -> tuple[str | None, str]:
    """Create the user `admin`, or set their password, unless another admin exists.

    Return the password if this run generated it, and a note to print. Without `chosen_password`,
    each run until the first sign-in of `admin` generates a new one, because the earlier one may be
    lost. A password that was changed in the console or the shell is kept. `admin` isn't asked to
    choose another password at the first sign-in, as scripts that install Switchgear use this one.
    """
    take_lock()
    admin = User.objects.filter(username=ADMIN).first()
    if chosen_password and _has_own_password():
        return None, "changed after the first start"
    if chosen_password:
        _set_password(admin, chosen_password, now)
        return None, "the one in SWITCHGEAR_ADMIN_PASSWORD"
    if admin is not None and admin.last_login is not None:
        return None, "unchanged"
    if admin is None and people.find_first_admin() is not None:
        return None, "the user admin doesn't exist, but other admins do"
    password = secrets.token_urlsafe(15)
    _set_password(admin, password, now)
    return password, "new at each start until the first sign-in; shown only once"


def _set_password(admin: User | None, password: str, now: datetime) -> None:
    if admin is None:
        people.create_user(username=ADMIN, password=password, role=Role.ADMIN, actor=ACTOR, now=now)
    elif not admin.check_password(password):
        people.set_password(user=admin, password=password, actor=ACTOR, now=now)


def _has_own_password() -> bool:
    about = AuditEntry.objects.filter(target=f"user:{ADMIN}", action="user.password_set")
    last = about.order_by("-id").first()
    return last is not None and (last.actor_type, last.actor_name) != (ACTOR.type, ACTOR.name)
