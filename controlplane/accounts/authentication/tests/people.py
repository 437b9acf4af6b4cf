"""A person with a second factor, and their browser, for authentication tests."""

from allauth.mfa.totp.internal.auth import format_hotp_value, generate_totp_secret, hotp_value
from django.test import Client
from django.utils import timezone

from controlplane.accounts.authentication import factors
from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor

PASSWORD = "correct-horse-9"
WORLD = system_actor("test")


def kim(role: str = "operator", **more: str) -> User:
    return User.objects.create_user("kim", PASSWORD, role=role, **more)


def with_app(user: User) -> tuple[str, list[str]]:
    """Give them an authenticator app; its secret, and their recovery codes."""
    secret = generate_totp_secret()
    made = factors.add_totp(user=user, secret=secret, actor=WORLD, now=timezone.now())
    return secret, made


def code(secret: str, periods: int = 0) -> str:
    """Return the app's current code, or the one of another 30 s period."""
    return format_hotp_value(hotp_value(secret, int(timezone.now().timestamp()) // 30 + periods))


def first_step(client: Client, **more: str):
    return client.post("/sign-in/", {"username": "kim", "password": PASSWORD, **more})
