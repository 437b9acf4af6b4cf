"""The permission matrix with filled-in page forms: a refused form changes no table or stream."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from controlplane.accounts.models.people import User
from controlplane.core.actions import Action
from controlplane.tests.security import (
    callers,
    forms,
    matrix,
    personas,
    refused_writes,
    urls,
    writes,
)
from controlplane.tests.security.existing_objects import REASON, REHEARSED

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("frameless"),
]
TABLE = matrix.needs()
YESTERDAY = timezone.now() - timedelta(days=1)
LETTER_VERBS = ("retry", "edit", "discard", "reveal")
LETTER = "dead-letters/<str:server>/-/{}/<letter_id:entry_id>/<letter_stream:name>/"
SWITCH = "switches/<str:scope>/<str:key>/{}/"
# What the person types or chooses, where the page's own form says too little.
SAID = {
    LETTER.format("edit"): {"field-0": "18"},
    "deliveries/retry/": {"destination": "slack"},
    "approvals/<int:approval_id>/deny/": {"comment": "Not yet, errors go on"},
    "deliveries/<int:delivery_id>/discard/": {"reason": REASON},
    "tokens/new/": {"scopes": ["slo:read"]},
    "tokens/<int:token_id>/hand-over/": {
        "owner": lambda: User.objects.get(username="matrix-approver").pk
    },
    "breakers/<slug:caller>/<slug:callee>/override/": {"mode": "forced_open"},
    "slos/<str:name>/exclusions/new/": {
        "starts_at": f"{YESTERDAY:%Y-%m-%dT10:00}",
        "ends_at": f"{YESTERDAY:%Y-%m-%dT11:00}",
    },
    "switches/engage/": {"scope": "feature", "key": "fresh"},
    "rules/new/": {"kind": "exclusive", "switches": "segment:a\nsegment:b"},
    "rules/<int:rule_id>/change/": {"name": "one", "switches": "segment:a\nsegment:b"},
    "teams/new/": {"slug": "fresh-team"},
    "teams/<slug:slug>/members/": {"people": "matrix-operator", "role": "lead"},
    "teams/<slug:slug>/owns/": {"owns": "segment:finance*"},
    "drills/new/": {"switch": "segment:quiet", "mode": "dry"},
    "drills/instances/new/": {"pattern": "ledger/*"},
    "drills/instances/remove/": {"pattern": "core/*"},
    "drills/schedules/remove/": {"switch": f"segment:{REHEARSED}"},
}
# Which one, where the first of its kind is in another state.
ARGS = {
    **{LETTER.format(verb): {"entry_id": writes.House.letter} for verb in LETTER_VERBS},
    **{SWITCH.format(verb): writes.FINANCE for verb in ("extend", "release", "acknowledge")},
    SWITCH.format("reconfirm"): {"scope": "experiment", "key": "b"},
    "approvals/<int:approval_id>/approve/": {"approval_id": writes.find_pending("release")},
    "approvals/<int:approval_id>/deny/": {"approval_id": writes.find_pending("release")},
    "reviews/<int:approval_id>/sign/": {"approval_id": writes.find_pending("break_glass_review")},
    "jobs/<int:job_id>/pause/": {"job_id": writes.live_ramp},
    "jobs/<int:job_id>/resume/": {"job_id": writes.paused("ramp")},
    "jobs/<int:job_id>/cancel/": {"job_id": writes.live_ramp},
    "deliveries/<int:delivery_id>/retry/": {"delivery_id": writes.failed},
    "deliveries/<int:delivery_id>/discard/": {"delivery_id": writes.failed},
    "targets/<int:target_id>/remove/": {"target_id": writes.hook},
    "targets/<int:target_id>/test/": {"target_id": writes.hook},
    "alerts/<int:alert_id>/acknowledge/": {"alert_id": writes.open_alert},
    "alerts/groups/<int:group_id>/acknowledge/": {"group_id": writes.open_alert},
    "ramps/<int:ramp_id>/resume/": {"ramp_id": writes.paused("ramp")},
    "ramps/<int:ramp_id>/advance/": {"ramp_id": writes.live_ramp},
}
# To pass over a dwell takes more than the address does.
NEEDS = {"ramps/<int:ramp_id>/advance/": "ramps:write + approve"}
# Who may is told of a state that this house is not in; who may not is refused all the same.
NOT_NOW = {
    SWITCH.format("undo"),
    "breakers/<slug:caller>/<slug:callee>/override/undo/",
    "trips/<int:trip_id>/dismiss/",
    "trips/policies/new/",
}
# Who may not is asked whether to request it from the owner, on the same form.
OFFERS = {SWITCH.format("release"): 422}
# A person's own: `test_breaking_in.py`, and the tests of these pages, ask whose they are.
OWN = {
    "ask/",
    "approvals/<int:approval_id>/edit/",
    "tokens/<int:token_id>/revoke/",
    "tokens/<int:token_id>/rotate/",
}
OWN_PAGES = ("confirm/", "preferences/")


def pages():
    for place in urls.places():
        need = TABLE.get(place.route, {}).get("POST")
        own = place.route in OWN or place.route.startswith(OWN_PAGES)
        if place.is_page and not place.other_form and need is not None and not (need.open or own):
            if place.route in NEEDS:
                need = matrix.need(NEEDS[place.route])._replace(actions=need.actions)
            yield place, need


def fill_forms(house, client, place, clients):
    """Each caller's name, the address of the form for them, and its body as `client` sends it."""
    write, body_of = writes.Write("POST", place.route, args=ARGS.get(place.route, {})), {}
    for name in clients:
        path = write.path(house).removeprefix("/api/v1")
        if path not in body_of:
            with callers.undone():
                said = SAID.get(place.route, {}).items()
                chosen = {name: one() if callable(one) else one for name, one in said}
                body_of[path] = forms.filled(client, path, **chosen)
        yield name, path, body_of[path]


@pytest.fixture
def house(settings):
    with refused_writes.full_house(settings) as found:
        yield found


@pytest.mark.exhaustive
def test_a_form_is_taken_from_who_may_and_leaves_no_trace_of_others(house):
    house, people = house
    wrong, tried = {}, set()
    for place, need in pages():
        for role, path, body in fill_forms(house, people["admin"], place, people):
            may = callers.person_may(need, role)
            post = partial(people[role].post, path, body)
            tried.add(place.route)
            if found := complain(house, place, post, may):
                wrong[f"{path} {role}"] = (found, body if may else "")

    assert not wrong, refused_writes.format_complaints(wrong)
    assert len(tried) > 50


@pytest.mark.exhaustive
def test_a_form_about_what_a_team_owns_is_taken_from_those_of_the_table(house):
    house, _people = house
    found = personas.create_callers(User.objects.get(username__startswith="ada"), house.there)
    people = {name: caller for name, caller in found.items() if not caller.persona.is_token}
    wrong, tried = {}, set()
    for place, need in pages():
        if not need.actions:
            continue
        for name, path, body in fill_forms(house, house.admin, place, people):
            may = people[name].may(need, place.route)
            post = partial(people[name].client.post, path, body)
            tried |= {(action, may) for action in need.actions}
            if found := complain(house, place, post, may):
                wrong[f"{path} {name}"] = (found, body if may else "")

    assert not wrong, refused_writes.format_complaints(wrong)
    assert {action for action, may in tried if may} == set(Action)
    assert {action for action, may in tried if not may} == set(Action)


def complain(house, place, post, may):
    """The problem with the answer to a form, "" without one."""
    answer, changed = refused_writes.answered(house, post)
    if may and place.route in NOT_NOW:
        return ""
    if not may and not changed and answer.status_code == OFFERS.get(place.route):
        return ""
    return refused_writes.complaint(writes.Write("POST", place.route), answer, changed, may)
