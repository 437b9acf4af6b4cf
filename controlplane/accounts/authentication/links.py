"""Links between users and their identities at the OpenID provider (issuer and subject)."""

import hashlib

from allauth.socialaccount.models import SocialAccount
from django.conf import settings

from controlplane.accounts.models.people import User

MAX_SUBJECT_LENGTH = 191  # The column's limit; OpenID allows 255.


def build_provider_id(issuer: str) -> str:
    """Return the key under which links store an issuer: `oidc:` and a hash of its URL."""
    return f"oidc:{hashlib.sha256(issuer.encode()).hexdigest()[:32]}"


def build_uid(subject: str) -> str:
    if len(subject) <= MAX_SUBJECT_LENGTH and subject.isprintable():
        return subject
    return f"sha256:{hashlib.sha256(subject.encode('utf-8', 'surrogatepass')).hexdigest()}"


def find_owner(issuer: str, subject: str) -> User | None:
    accounts = SocialAccount.objects.filter(
        provider=build_provider_id(issuer), uid=build_uid(subject)
    )
    account = accounts.select_related("user").first()
    return account.user if account else None


def link_user(user: User, issuer: str, subject: str) -> None:
    SocialAccount.objects.create(
        user=user, provider=build_provider_id(issuer), uid=build_uid(subject)
    )


def is_linked(user: User) -> bool:
    """Return True if the user has an identity at the configured provider."""
    linked = SocialAccount.objects.filter(
        user=user, provider=build_provider_id(settings.OIDC.issuer)
    )
    return bool(settings.OIDC.issuer) and linked.exists()
