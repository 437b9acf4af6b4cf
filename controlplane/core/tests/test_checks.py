"""System checks, as `manage.py check` runs them."""

import pytest

from controlplane.core.checks import OWNS_THE_TRAIL, check_audit_table_owner
from controlplane.core.tests import processes


@pytest.mark.django_db(transaction=True)
def test_a_wrong_retention_period_fails_the_check(monkeypatch):
    monkeypatch.setenv("KEPT_DAYS", "nothing=3")

    done = processes.manage("check")

    assert done.returncode == 1, done.stdout
    assert "core.E001" in done.stderr


@pytest.mark.django_db
def test_whoever_owns_the_trail_is_warned():
    assert check_audit_table_owner() == [OWNS_THE_TRAIL]


@pytest.mark.django_db(transaction=True)
def test_the_applications_own_role_is_not():
    done = processes.manage("check", "--deploy", "--tag", "security")

    assert done.returncode == 0, done.stderr
    assert "core.W001" not in done.stdout + done.stderr
