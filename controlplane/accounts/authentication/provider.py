"""OpenID Connect client that verifies the provider's identities.

allauth handles the redirects (state, PKCE, code exchange). This module verifies the result:
signature by the provider's keys, issuer, audience, times and nonce.
"""

import secrets
from dataclasses import dataclass
from typing import Any

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from . import links

registry.load()

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Accepted signature algorithms: asymmetric ones only, never `none`."""

SKEW = 60  # Seconds by which the provider's clock may differ.
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
NEEDED = ["exp", "iat", "iss", "aud", "sub"]


@dataclass(frozen=True)
class Identity:
    """A person's verified claims from the identity provider; `auth_time` is in Unix seconds.

    `object_id` is the `oid` of Entra ID, whose subjects differ by application; "" elsewhere.
    """

    issuer: str
    subject: str
    object_id: str
    username: str
    name: str
    email: str
    email_verified: bool
    groups: frozenset[str]
    auth_time: int | None
    with_second_factor: bool


class OidcProvider(OpenIDConnectProvider):  # type: ignore[misc]
    pkce_enabled_default = True

    def get_callback_url(self) -> str:
        return reverse("provider_callback")

    def get_oauth2_adapter(self, request: HttpRequest) -> "ProviderAdapter":
        return ProviderAdapter(request)


def build_provider(request: HttpRequest) -> OidcProvider:
    app = SocialApp(
        provider="openid_connect",
        provider_id=links.build_provider_id(settings.OIDC.issuer),
        name=settings.OIDC.name,
        client_id=settings.OIDC.client_id,
        secret=settings.OIDC.client_secret,
        settings={"server_url": settings.OIDC.issuer, "oauth_pkce_enabled": True},
    )
    return OidcProvider(request, app=app)


class ProviderAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """A client of the identity provider; :meth:`verify_identity` verifies what it returned."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request, links.build_provider_id(settings.OIDC.issuer))

    def get_provider(self) -> OidcProvider:
        return build_provider(self.request)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        path = reverse("provider_callback")
        url: str = settings.PUBLIC_URL
        return f"{url}{path}" if url else str(self.request.build_absolute_uri(path))

    @property
    def openid_config(self) -> dict[str, Any]:
        config: Any = super().openid_config
        if not isinstance(config, dict) or not all(
            isinstance(config.get(name), str) for name in ENDPOINTS
        ):
            raise OAuth2Error("the provider's metadata is incomplete")
        if str(config.get("issuer", "")).rstrip("/") != settings.OIDC.issuer:
            raise OAuth2Error("the provider's metadata names another issuer")
        return config

    def verify_identity(self, answer: dict[str, Any], nonce: str) -> Identity:
        """Verify a token response; return the person's identity, or raise OAuth2Error."""
        claims = self._claims(answer.get("id_token"), nonce)
        more = claims
        if self.openid_config.get("userinfo_endpoint"):
            user_info = self._fetch_user_info(str(answer.get("access_token", "")))
            if not isinstance(user_info, dict) or user_info.get("sub") != claims["sub"]:
                raise OAuth2Error("user info and ID token name different subjects")
            more = {**claims, **user_info}
        return _build_identity(claims, more)

    def _claims(self, token: Any, nonce: str) -> dict[str, Any]:
        if not isinstance(token, str):
            raise OAuth2Error("the provider sent no ID token")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._find_key(token),
                algorithms=list(ALGORITHMS),
                audience=settings.OIDC.client_id,
                issuer=self.openid_config["issuer"],
                leeway=SKEW,
                options={"require": NEEDED},
            )
        except (jwt.PyJWTError, TypeError, ValueError) as error:
            raise OAuth2Error(f"the ID token is not valid: {error}") from error
        if not nonce or not secrets.compare_digest(str(claims.get("nonce", "")), nonce):
            raise OAuth2Error("the ID token has another nonce")
        for_several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if for_several and claims.get("azp") != settings.OIDC.client_id:
            raise OAuth2Error("the ID token is for another client")
        if not isinstance(claims["sub"], str) or not claims["sub"]:
            raise OAuth2Error("the ID token has no subject")
        return claims

    def _find_key(self, token: str) -> Any:
        """Return the provider's public key for the ID token: by its `kid`, else the only key."""
        header = jwt.get_unverified_header(token)
        with get_adapter(self.request).get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
            keys = jwt.PyJWKSet.from_dict(answer.json()).keys
        fitting = [key for key in keys if key.public_key_use in {None, "sig"}]
        if "kid" in header:
            fitting = [key for key in fitting if key.key_id == header["kid"]]
        if len(fitting) != 1:
            raise jwt.InvalidKeyError("no key of the provider matches")
        return fitting[0].key


def _build_identity(claims: dict[str, Any], more: dict[str, Any]) -> Identity:
    value = more.get(settings.OIDC.claim)
    groups = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    at = claims.get("auth_time")
    methods = claims.get("amr")
    return Identity(
        issuer=settings.OIDC.issuer,
        subject=claims["sub"],
        object_id=_clean_claim(claims, "oid"),
        username=_clean_claim(more, "preferred_username"),
        name=_clean_claim(more, "name"),
        email=_clean_claim(more, "email"),
        email_verified=more.get("email_verified") is True,
        groups=frozenset(group for group in groups if isinstance(group, str)),
        auth_time=at if isinstance(at, int) else None,
        with_second_factor=isinstance(methods, list) and "mfa" in methods,
    )


def _clean_claim(claims: dict[str, Any], name: str) -> str:
    """Return a text claim, without characters that PostgreSQL can't store; "" if missing."""
    value = claims.get(name)
    if not isinstance(value, str):
        return ""
    return value.encode(errors="ignore").decode().replace("\x00", "").strip()[:254]
