"""*Needs attention* names people on call without an emergency code."""

import pytest

from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.core.attention import services as attention
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.notify.models.targets import EscalationStep, OnCallMember, Target

from .people import add

pytestmark = pytest.mark.django_db


def find_items():
    overview = attention.read_all(db_now())
    assert not overview.unread
    return [one for one in overview.waiting if one.kind == "emergency_code"]


def put_on_call(user, place=0):
    target = add(f"target of {user.username}", user=user.username)
    rotation = Target.objects.filter(name="rotation").first() or add("rotation", kind="on_call")
    OnCallMember.objects.create(rotation=rotation, position=place, person=target)
    return target


def create_code(user):
    emergency_codes.create_code(user=user, actor=user.as_actor(), now=db_now())


def test_nobody_is_named_without_people_on_call():
    add("kim", user=person("operator", "kim").username)

    assert find_items() == []


def test_member_of_a_rotation_without_a_code_is_named():
    put_on_call(person("operator", "kim"))

    (item,) = find_items()

    assert item.title == "kim on call without an emergency code"


def test_person_of_an_escalation_step_is_named():
    target = add("kim", user=person("approver", "kim").username)
    step = EscalationStep.objects.first()
    step.target = target
    step.save()

    (item,) = find_items()

    assert item.title == "kim on call without an emergency code"


def test_several_people_are_one_item_and_each_is_named_once():
    for place, name in enumerate(["omar", "kim", "ayse"]):
        target = put_on_call(person("operator", name), place)
    OnCallMember.objects.create(rotation=add("second", kind="on_call"), position=0, person=target)

    (item,) = find_items()

    assert item.title == "3 people on call without an emergency code"
    assert "ayse, kim, omar." in item.detail


def test_many_people_are_counted():
    for place in range(12):
        put_on_call(person("operator", f"p{place:02}"), place)

    (item,) = find_items()

    assert "p08, p09 and 2 more." in item.detail


def test_person_with_a_code_is_not_named_until_it_is_revoked():
    kim = person("operator", "kim")
    put_on_call(kim)
    create_code(kim)
    assert find_items() == []

    emergency_codes.revoke_code(user=kim, actor=kim.as_actor(), now=db_now())

    assert len(find_items()) == 1


@pytest.mark.parametrize("change", [{"role": "viewer"}, {"is_active": False}])
def test_person_who_may_have_no_code_is_not_named(change):
    kim = person("operator", "kim")
    put_on_call(kim)
    type(kim).objects.filter(pk=kim.pk).update(**change)

    assert find_items() == []


def test_item_leads_operators_to_their_security_page():
    kim = person("operator", "kim")
    put_on_call(kim)
    attention.clear_count()

    page = browser_of(kim).get("/attention/").content.decode()
    viewers = browser_of(person("viewer")).get("/attention/").content.decode()

    assert 'href="/preferences/security/#emergency-code"' in page
    assert "kim on call without an emergency code" in viewers
    assert 'href="/preferences/security/#emergency-code"' not in viewers
