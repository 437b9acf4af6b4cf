"""`manage.py token`: create, list and revoke API tokens."""

from argparse import ArgumentParser
from typing import Any

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services as tokens
from controlplane.core import durations
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.shell import ShellCommand, shell_actor


class Command(ShellCommand):
    help = "Create, list and revoke API tokens. A token's secret is printed once and never stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser(
            "create", help="create a token; prints it alone on the last line"
        )
        add = create.add_argument
        add("name")
        add("--scopes", required=True, help="for example switches:read,report:write")
        add("--expires", help="lifetime, such as 90d or 24h; unlimited if absent")
        add("--services", default="", help="valid only for these services: core,gateway")
        add("--owner", help="owner's user name; the first admin if absent")
        commands.add_parser("list", help="list tokens, newest first")
        revoke = commands.add_parser("revoke", help="revoke a token")
        revoke.add_argument("prefix", help="the part after sg_")
        revoke.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["command"])(options)

    def create(self, options: dict[str, Any]) -> None:
        try:
            lifetime = durations.parse(options["expires"]) if options["expires"] else None
        except ValueError as error:
            raise InvalidInput({"--expires": [str(error)]}) from error
        token, text = tokens.create_token(
            name=options["name"],
            owner=_find_owner(options["owner"]),
            scopes=[scope.strip() for scope in options["scopes"].split(",") if scope.strip()],
            lifetime=lifetime,
            limit_to=[name.strip() for name in options["services"].split(",") if name.strip()],
            actor=shell_actor(),
            now=db_now(),
        )
        ends = f"expires {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "no expiry"
        for warning in tokens.describe_admin_powers(token):
            self.stderr.write(f"Warning: {warning}")
        owner = token.owner.username
        self.stderr.write(
            f"Created token {token.name} (owner {owner}, {ends}). It is shown only once."
        )
        self.line(text)

    def list(self, options: dict[str, Any]) -> None:
        for token in Token.objects.select_related("owner").order_by("-id")[:500]:
            state = "revoked" if token.revoked_at else "active"
            scopes = ",".join(token.scopes)
            limit = f"  only for {','.join(token.services)}" if token.services else ""
            self.line(
                f"{token.prefix}  {state:8} {token.owner.username:16} {token.name}  {scopes}{limit}"
            )

    def revoke(self, options: dict[str, Any]) -> None:
        token = Token.objects.filter(prefix=options["prefix"]).first()
        if token is None:
            raise NotFound(f"No token has the prefix {options['prefix']}.")
        reason = options["reason"]
        tokens.revoke_token(token=token, actor=shell_actor(), now=db_now(), reason=reason)
        self.line(f"revoked {token.prefix} ({token.name})")


def _find_owner(username: str | None) -> User:
    named = User.objects.filter(username=username)
    owner = named.first() if username else people.find_first_admin()
    if owner is None:
        raise NotFound(f"There is no user {username}." if username else "There is no admin yet.")
    return owner
