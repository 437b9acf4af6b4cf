"""App config of allauth's social accounts, without its imports of provider libraries."""

from allauth.socialaccount.apps import SocialAccountConfig


class LazySocialAccountConfig(SocialAccountConfig):  # type: ignore[misc]
    def ready(self) -> None:
        from allauth.socialaccount import checks  # noqa: F401
