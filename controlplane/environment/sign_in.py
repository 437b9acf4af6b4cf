"""Settings of sign-in and of the OpenID provider for single sign-on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.core import environment_variables as env


@dataclass(frozen=True)
class SignInSettings:
    """Settings of sign-in: session lifetimes, and roles that need a second factor."""

    session_minutes: int
    idle_minutes: int
    confirm_minutes: int
    second_factor_roles: tuple[str, ...]


@dataclass(frozen=True)
class Oidc:
    """The OpenID provider for single sign-on; `issuer` is empty if there is none.

    `claim` names the claim with a person's groups, and `roles` are pairs of a group and its role. A
    person whose groups have no role can't sign in.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    claim: str
    roles: tuple[tuple[str, str], ...]


def read_sign_in(variables: Mapping[str, str]) -> SignInSettings:
    return SignInSettings(
        session_minutes=60
        * env.read_number(variables, "SESSION_HOURS", default=12, low=1, high=720),
        idle_minutes=env.read_number(
            variables, "SESSION_IDLE_MINUTES", default=120, low=5, high=43_200
        ),
        confirm_minutes=env.read_number(variables, "CONFIRM_MINUTES", default=30, low=1, high=1440),
        second_factor_roles=env.read_roles(variables, "SECOND_FACTOR_ROLES"),
    )


def read_oidc(variables: Mapping[str, str]) -> Oidc:
    """Read the `OIDC_` variables; `OIDC_ROLES` has entries `group=role` separated by spaces."""
    issuer = variables.get("OIDC_ISSUER", "").rstrip("/")
    client, secret = variables.get("OIDC_CLIENT_ID", ""), variables.get("OIDC_CLIENT_SECRET", "")
    if issuer:
        env.check_url(issuer, "OIDC_ISSUER", {"https", "http"})
        for name, value in (("OIDC_CLIENT_ID", client), ("OIDC_CLIENT_SECRET", secret)):
            if not value:
                raise env.WrongVariable(name, "must be set if OIDC_ISSUER is set")
    pairs = []
    for text in variables.get("OIDC_ROLES", "").split():
        group, is_pair, role = text.rpartition("=")
        if not (is_pair and group):
            raise env.WrongVariable("OIDC_ROLES", "must be group=role, separated by spaces")
        env.check_role(role, "OIDC_ROLES")
        pairs.append((group, role))
    return Oidc(
        issuer=issuer,
        client_id=client,
        client_secret=secret,
        name=variables.get("OIDC_NAME") or "single sign-on",
        claim=variables.get("OIDC_CLAIM") or "groups",
        roles=tuple(pairs),
    )
