"""allauth's app for sign-in by a provider, without loading the providers' libraries at once."""

from allauth.socialaccount.apps import SocialAccountConfig


class LazySocialAccountConfig(SocialAccountConfig):  # type: ignore[misc]
    """Load no provider at start-up: :mod:`.provider` does, and so only the web has them."""

    def ready(self) -> None:
        from allauth.socialaccount import checks  # noqa: F401
