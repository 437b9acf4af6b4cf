"""A whole organization is provisioned by real HTTP requests, and changed while others read."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from controlplane.tests.fake_directory import GROUP_NAMES, FakeDirectory
from controlplane.tests.installation import running

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
MAX_SECONDS = 90
"""Longest time for 300 people and 12 groups, on a busy machine; alone it takes a few seconds."""
MEMBERS_OF_PAYMENTS = (
    "from controlplane.accounts.models import Membership, Team; "
    "from django.utils.timezone import now; "
    "Team.objects.create(slug='payments', name='Payments', member_group='payments',"
    " created_at=now())"
)
COUNT = (
    "from controlplane.accounts.models import Membership; "
    "print('members', Membership.objects.count())"
)


@pytest.fixture
def installation(tmp_path):
    with running(tmp_path / "var", OIDC_ROLES="payments=operator search=approver") as one:
        yield one


def test_organization_is_provisioned_and_changed(installation):
    installation.manage("shell", "-v0", "-c", MEMBERS_OF_PAYMENTS)
    directory = FakeDirectory(installation.url, installation.token("scim"))

    began = time.monotonic()
    directory.provision()
    assert time.monotonic() - began < MAX_SECONDS

    assert len(directory.list_all("Users")) == 300
    assert len(directory.list_all("Groups")) == len(GROUP_NAMES) == 12
    assert "members 25" in installation.manage("shell", "-v0", "-c", COUNT)
    names = list(directory.user_ids)
    people = names[0::12]
    with ThreadPoolExecutor(3) as threads:
        removed = threads.map(lambda name: directory.remove_member("payments", name), people[:10])
        added = threads.submit(directory.add_members, "payments", names[1::12])
        found = threads.submit(directory.list_all, "Users")
        list(removed)
        added.result()
    assert len(found.result()) == 300
    directory.rename_group("search", "searchers")
    directory.deactivate(people[20])
    assert "members 40" in installation.manage("shell", "-v0", "-c", COUNT)
    assert "intact" in installation.manage("audit", "verify")


def test_refusals_before_django_are_scim(installation):
    headers = {"Authorization": f"Bearer {installation.token('scim')}"}
    with httpx.Client(base_url=installation.url, headers=headers, timeout=30) as client:
        refused = client.post("/scim/v2/Users", content=b" " * (4 * 1024 * 1024 + 1))

    assert refused.status_code == 413
    assert refused.headers["Content-Type"] == "application/scim+json"
    assert refused.json()["status"] == "413"
