import pytest

from controlplane.accounts.scim.tests.caller import Directory
from controlplane.core.http.tests.callers import person
from controlplane.environment.sign_in import Oidc


@pytest.fixture
def admin(db):
    return person("admin", "root")


@pytest.fixture
def directory(admin, settings):
    """An identity provider; OIDC_ROLES has a role for each group named as one."""
    roles = tuple((role, role) for role in ("viewer", "operator", "approver", "admin"))
    settings.OIDC = Oidc("", "", "", "single sign-on", "groups", roles)
    return Directory(admin)
