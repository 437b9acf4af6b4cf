"""Links between users and identities of the provider: by issuer and subject, never by name.

An account is linked once, at the first sign-in, by an e-mail address that the provider has verified
and an admin has entered here.
"""

import hashlib

from allauth.socialaccount.models import SocialAccount
from django.conf import settings

from controlplane.accounts.models.people import User

MAX_SUBJECT_LENGTH = 191  # The column's limit; OpenID allows 255.


def provider_id(issuer: str) -> str:
    """Return the stored name of an issuer; subjects of different issuers are different people."""
    return f"oidc:{hashlib.sha256(issuer.encode()).hexdigest()[:32]}"


def uid(subject: str) -> str:
    digest = hashlib.sha256(subject.encode("utf-8", "surrogatepass")).hexdigest()
    return (
        subject
        if len(subject) <= MAX_SUBJECT_LENGTH and subject.isprintable()
        else f"sha256:{digest}"
    )


def owner(issuer: str, subject: str) -> User | None:
    found = SocialAccount.objects.filter(provider=provider_id(issuer), uid=uid(subject))
    account = found.select_related("user").first()
    return account.user if account else None


def link(user: User, issuer: str, subject: str) -> None:
    SocialAccount.objects.create(user=user, provider=provider_id(issuer), uid=uid(subject))


def is_linked(user: User) -> bool:
    """Return True if this person can sign in through the configured provider."""
    issuer = settings.OIDC.issuer
    if not issuer:
        return False
    return bool(SocialAccount.objects.filter(user=user, provider=provider_id(issuer)).exists())
