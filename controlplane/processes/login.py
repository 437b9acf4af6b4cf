"""Startup check that a single login can assume the application's role."""

import psycopg
from django.core.management.base import CommandError
from psycopg import errors, sql

from controlplane.environment import Environment

CONNECT_SECONDS = 3


def check(environment: Environment) -> None:
    """Raise CommandError with status 2 if the login may not assume the role.

    A process with a snapshot on disk, or without a reachable database, starts without this check.
    """
    role, url = environment.database.assume_role, environment.database.url
    if role is None or (environment.data_dir / "snapshot" / "current").exists():
        return
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, autocommit=True) as connection:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    except (errors.InvalidParameterValue, errors.InsufficientPrivilege) as error:
        first_line = str(error).splitlines()[0]
        raise CommandError(
            f"DATABASE_OWNER_URL: is missing, so the login of DATABASE_URL should own the tables,"
            f" and it can't become {role}: {first_line}. Name the owner's login there (its password"
            " is not needed), or run `manage.py provision` first if there is only one login.",
            returncode=2,
        ) from error
    except psycopg.OperationalError:
        pass
