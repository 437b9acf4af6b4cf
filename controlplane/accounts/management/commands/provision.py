"""`manage.py provision`: as owner, grant the application's rights and create the first admin."""

import json
import os
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import ProgrammingError

from controlplane.accounts.first_admin import ensure_admin
from controlplane.core import provision
from controlplane.core.clock import db_now
from controlplane.core.shell import ShellCommand


class Command(ShellCommand):
    help = "Grant the application its rights and make the first admin; prints one line of JSON."

    def handle(self, *args: Any, **options: Any) -> None:
        role = settings.DATABASE_RUNTIME_ROLE
        try:
            if settings.ENV.database.assume_role:
                provision.make_role(role)
            provision.grant_rights(role)
        except ProgrammingError as error:
            problem = str(error).splitlines()[0]
            raise CommandError(
                f"The role {role}, which the application runs as, can't be set up: {problem}."
                f" Let a superuser create it (and GRANT {role} to the owner's login if both"
                " are one login), then try again."
            ) from error
        admin = ensure_admin(os.environ.get("SWITCHGEAR_ADMIN_PASSWORD", ""), db_now())
        provision.run_first_steps(db_now())
        self.line(json.dumps(asdict(admin)))
