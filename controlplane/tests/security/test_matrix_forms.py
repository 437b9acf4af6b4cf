"""The permission matrix with filled-in page forms: a refused form changes no table or stream."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from controlplane.tests.security import callers, forms, matrix, refused_writes, urls, writes
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
    "breakers/<slug:caller>/<slug:callee>/override/": {"mode": "forced_open"},
    "slos/<str:name>/exclusions/new/": {
        "starts_at": f"{YESTERDAY:%Y-%m-%dT10:00}",
        "ends_at": f"{YESTERDAY:%Y-%m-%dT11:00}",
    },
    "switches/engage/": {"scope": "feature", "key": "fresh"},
    "rules/new/": {"kind": "exclusive", "switches": "segment:a\nsegment:b"},
    "rules/<int:rule_id>/change/": {"name": "one", "switches": "segment:a\nsegment:b"},
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
# A person's own: `test_breaking_in.py`, and the tests of these pages, ask whose they are.
OWN = {"approvals/<int:approval_id>/edit/", "tokens/<int:token_id>/revoke/"}
OWN_PAGES = ("confirm/", "preferences/")


def pages():
    for place in urls.places():
        need = TABLE.get(place.route, {}).get("POST")
        own = place.route in OWN or place.route.startswith(OWN_PAGES)
        if place.is_page and not place.other_form and need is not None and not (need.open or own):
            yield place, matrix.need(NEEDS[place.route]) if place.route in NEEDS else need


@pytest.fixture
def house(settings):
    with refused_writes.full_house(settings) as found:
        yield found


@pytest.mark.exhaustive
def test_a_form_is_taken_from_who_may_and_leaves_no_trace_of_others(house):
    house, people = house
    wrong, tried = {}, set()
    for place, need in pages():
        write = writes.Write("POST", place.route, args=ARGS.get(place.route, {}))
        body_of = {}
        for role, client in people.items():
            path = write.path(house).removeprefix("/api/v1")
            if path not in body_of:
                with callers.undone():
                    expected = SAID.get(place.route, {})
                    body_of[path] = forms.filled(people["admin"], path, **expected)
            body = body_of[path]
            may = callers.person_may(need, role)
            answer, changed = refused_writes.answered(house, partial(client.post, path, body))
            tried.add(place.route)
            if may and place.route in NOT_NOW:
                continue
            if found := refused_writes.complaint(write, answer, changed, may):
                wrong[f"{path} {role}"] = (found, body if may else "")

    assert not wrong, refused_writes.format_complaints(wrong)
    assert len(tried) > 50
