"""`manage.py token`: create, rotate, list and revoke API tokens."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import rotation
from controlplane.accounts.tokens import services as tokens
from controlplane.core import durations
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.shell import ShellCommand, shell_actor


class Command(ShellCommand):
    help = (
        "Create, rotate, list and revoke API tokens. A token's secret is printed once and never "
        "stored."
    )

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
        add("--team", default="", help="slug of the team that the token acts for")
        add("--patterns", default="", help="may change only these: experiment:*,segment:finance")
        add("--only-owned", action="store_true", help="may change only what its teams own")
        add("--owner", help="owner's user name; the first admin if absent")
        rotate = commands.add_parser(
            "rotate", help="replace a token; prints its successor alone on the last line"
        )
        rotate.add_argument("prefix", help="the part after sg_")
        rotate.add_argument(
            "--overlap", default="24h", help="the present one stays valid for this; 24h if absent"
        )
        rotate.add_argument("--expires", help="lifetime of the successor; as before if absent")
        commands.add_parser("list", help="list tokens, newest first")
        revoke = commands.add_parser("revoke", help="revoke a token")
        revoke.add_argument("prefix", help="the part after sg_")
        revoke.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        getattr(self, options["command"])(options)

    def create(self, options: dict[str, Any]) -> None:
        lifetime = _parse_lifetime(options["expires"])
        token, text = tokens.create_token(
            name=options["name"],
            owner=_find_owner(options["owner"]),
            scopes=_split(options["scopes"]),
            lifetime=lifetime,
            limit_to=_split(options["services"]),
            team=tokens.find_team(options["team"]),
            patterns=_split(options["patterns"]),
            only_owned=options["only_owned"],
            actor=shell_actor(),
            now=db_now(),
        )
        self._print(token, text)

    def rotate(self, options: dict[str, Any]) -> None:
        former = _find_token(options["prefix"])
        token, text = rotation.rotate_token(
            token=former,
            overlap=rotation.parse_overlap(options["overlap"]),
            lifetime=_parse_lifetime(options["expires"]),
            actor=shell_actor(),
            now=db_now(),
        )
        former.refresh_from_db()
        self.stderr.write(f"sg_{former.prefix}_… ends {former.expires_at:%Y-%m-%d %H:%M} UTC.")
        self._print(token, text)

    def _print(self, token: Token, text: str) -> None:
        ends = f"expires {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "no expiry"
        for warning in tokens.describe_admin_powers(token):
            self.stderr.write(f"Warning: {warning}")
        owner = token.team.name if token.team else token.owner.username
        self.stderr.write(
            f"Created token {token.name} (owner {owner}, {ends}). It is shown only once."
        )
        self.line(text)

    def list(self, options: dict[str, Any]) -> None:
        for token in Token.objects.select_related("owner", "team").order_by("-id")[:500]:
            state = "revoked" if token.revoked_at else "active"
            owner = f"team:{token.team.slug}" if token.team else token.owner.username
            limits = [*token.services, *token.patterns, *["what it owns"] * token.only_owned]
            limit = f"  only for {','.join(limits)}" if limits else ""
            scopes = ",".join(token.scopes)
            self.line(f"{token.prefix}  {state:8} {owner:16} {token.name}  {scopes}{limit}")

    def revoke(self, options: dict[str, Any]) -> None:
        token = _find_token(options["prefix"])
        reason = options["reason"]
        tokens.revoke_token(token=token, actor=shell_actor(), now=db_now(), reason=reason)
        self.line(f"revoked {token.prefix} ({token.name})")


def _parse_lifetime(expires: str | None) -> timedelta | None:
    try:
        return durations.parse(expires) if expires else None
    except ValueError as error:
        raise InvalidInput({"--expires": [str(error)]}) from error


def _find_token(prefix: str) -> Token:
    token = Token.objects.filter(prefix=prefix).first()
    if token is None:
        raise NotFound(f"No token has the prefix {prefix}.")
    return token


def _split(listed: str) -> list[str]:
    return [part.strip() for part in listed.split(",") if part.strip()]


def _find_owner(username: str | None) -> User:
    named = User.objects.filter(username=username)
    owner = named.first() if username else people.find_first_admin()
    if owner is None:
        raise NotFound(f"There is no user {username}." if username else "There is no admin yet.")
    return owner
