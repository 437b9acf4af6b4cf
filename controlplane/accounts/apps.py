from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "controlplane.accounts"
    label = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        from controlplane.accounts.authentication import resets  # noqa: F401 - links in mails
        from controlplane.accounts.people import authority as accounts
        from controlplane.core import authority

        authority.register(accounts)
