from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "controlplane.accounts"
    label = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        from django.contrib.sessions.models import Session

        from controlplane.accounts.authentication import resets  # noqa: F401 - links in mails
        from controlplane.accounts.people import authority as accounts
        from controlplane.accounts.teams import (  # noqa: F401 - register themselves
            approval_kind,
            grants,
        )
        from controlplane.core import authority, registered_sql

        authority.register(accounts)
        registered_sql.USE_QUERIES.update(
            core_user="SELECT EXISTS (SELECT FROM core_user WHERE last_login IS NOT NULL)",
            core_token="SELECT EXISTS (SELECT FROM core_token)",  # noqa: S106 - a query
        )
        # A restore must not sign anybody in again.
        registered_sql.TABLES_WITHOUT_ROWS.update({"core_browsersession", Session._meta.db_table})
