"""Table of emergency codes: one in use per person, and changes that data planes notice."""

from datetime import timedelta

import pytest
from django.db import IntegrityError

from controlplane.accounts.models import Credentials, EmergencyCode
from controlplane.accounts.models.emergency_codes import CLOCK_TOLERANCE
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person

pytestmark = pytest.mark.django_db


def get_revision():
    return Credentials.objects.get().revision


def create_code(user, **values):
    given = {"salt": "00" * 16, "digest": "11" * 32, "created_at": db_now(), **values}
    return EmergencyCode.objects.create(user=user, **given)


def test_person_has_at_most_one_code_in_use():
    kim = person("operator")
    create_code(kim, revoked_at=db_now())
    create_code(kim)

    with pytest.raises(IntegrityError, match="emergencycode_one_per_user"):
        create_code(kim)


@pytest.mark.parametrize(
    "change", [{"revoked_at": db_now}, {"digest": lambda: "22" * 32}, {"salt": lambda: "33" * 16}]
)
def test_change_of_a_code_increments_the_revision(change):
    code = create_code(person("operator"))
    before = get_revision()

    EmergencyCode.objects.filter(pk=code.pk).update(
        **{field: value() for field, value in change.items()}
    )

    assert get_revision() > before


def test_new_and_deleted_codes_increment_the_revision_and_use_does_not():
    before = get_revision()
    code = create_code(person("operator"))
    created = get_revision()
    EmergencyCode.objects.update(last_used_at=db_now())
    used = get_revision()
    code.delete()

    assert before < created == used < get_revision()


def test_code_is_valid_from_its_creation_until_it_is_revoked():
    now = db_now()
    hour = timedelta(hours=1)
    old = create_code(person("operator"), created_at=now - 2 * hour, revoked_at=now - hour)
    new = create_code(old.user, created_at=now - hour)

    def find(at):
        return list(EmergencyCode.objects.valid_at(at))

    assert find(now - 3 * hour) == []
    assert find(now - 2 * hour - CLOCK_TOLERANCE) == [old]
    assert find(now - 1.5 * hour) == [old]
    assert find(now - hour) == [new]
    assert find(now) == [new]
    assert list(EmergencyCode.objects.current()) == [new]
