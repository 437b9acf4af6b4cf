"""Emergency codes in retention and in the admin site."""

from datetime import timedelta

import pytest

from controlplane.accounts.emergency_codes.retention_rules import EMERGENCY_CODES
from controlplane.accounts.models import EmergencyCode
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.retention import purge

pytestmark = pytest.mark.django_db


def create_code(user, age, revoked=None):
    now = db_now()
    return EmergencyCode.objects.create(
        user=user,
        salt="ab" * 16,
        digest="cd" * 32,
        created_at=now - timedelta(days=age),
        revoked_at=None if revoked is None else now - timedelta(days=revoked),
    )


def test_only_codes_revoked_long_ago_are_deleted():
    kim = person("operator", "kim")
    create_code(kim, age=900, revoked=401)
    recent = create_code(kim, age=401, revoked=399)
    current = create_code(kim, age=500)

    assert purge([EMERGENCY_CODES], db_now()) == 1

    assert set(EmergencyCode.objects.all()) == {recent, current}


def test_admin_site_shows_codes_without_their_hash():
    code = create_code(person("operator", "kim"), age=1)
    root = browser_of(person("admin", "root"))

    pages = [
        root.get(f"/admin/core/emergencycode/{path}").content.decode()
        for path in ("", f"{code.pk}/change/")
    ]

    assert all("kim" in page for page in pages)
    assert not [page for page in pages if code.salt in page or code.digest in page]
