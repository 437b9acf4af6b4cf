"""Settings of sign-in and of the identity provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.core.environment_variables import (
    WrongVariable,
    checked_url,
    known_role,
    number,
    roles,
)


@dataclass(frozen=True)
class Entry:
    """Settings of sign-in: session lifetimes, and actions that need a confirmed identity."""

    session_minutes: int
    idle_minutes: int
    confirm_minutes: int
    second_factor_roles: tuple[str, ...]


@dataclass(frozen=True)
class Oidc:
    """The OpenID provider for sign-in; `issuer` is empty if there is none.

    `roles` pairs a value of the claim `claim` with a role; people without a match are refused.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    claim: str
    roles: tuple[tuple[str, str], ...]


def entry(variables: Mapping[str, str]) -> Entry:
    return Entry(
        session_minutes=60 * number(variables, "SESSION_HOURS", default=12, low=1, high=720),
        idle_minutes=number(variables, "SESSION_IDLE_MINUTES", default=120, low=5, high=43_200),
        confirm_minutes=number(variables, "CONFIRM_MINUTES", default=30, low=1, high=1440),
        second_factor_roles=roles(variables, "SECOND_FACTOR_ROLES"),
    )


def oidc(variables: Mapping[str, str]) -> Oidc:
    """`OIDC_ROLES`: `group=role`, several with spaces between; the strongest match counts."""
    issuer = variables.get("OIDC_ISSUER", "").rstrip("/")
    client, secret = variables.get("OIDC_CLIENT_ID", ""), variables.get("OIDC_CLIENT_SECRET", "")
    if issuer:
        checked_url(issuer, "OIDC_ISSUER", {"https", "http"})
        for name, value in (("OIDC_CLIENT_ID", client), ("OIDC_CLIENT_SECRET", secret)):
            if not value:
                raise WrongVariable(name, "OIDC_ISSUER is set, so this has to be")
    pairs = []
    for text in variables.get("OIDC_ROLES", "").split():
        group, is_pair, role = text.rpartition("=")
        if not (is_pair and group):
            raise WrongVariable("OIDC_ROLES", "must be group=role, several with spaces between")
        known_role(role, "OIDC_ROLES")
        pairs.append((group, role))
    return Oidc(
        issuer=issuer,
        client_id=client,
        client_secret=secret,
        name=variables.get("OIDC_NAME") or "single sign-on",
        claim=variables.get("OIDC_CLAIM") or "groups",
        roles=tuple(pairs),
    )
