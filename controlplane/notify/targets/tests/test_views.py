"""The Notifications page: the reach of each step, and the forms of admins."""

import re

import pytest

from controlplane.core.http.tests.callers import as_role
from controlplane.notify.models.targets import Route, Target

from .people import add, fill

pytestmark = pytest.mark.django_db


def text(response):
    return response.content.decode()


def pk(name):
    return Target.objects.get(name=name).pk


def test_matrix_says_who_is_behind_each_step_and_where_nobody_is():
    fill("team-lead", "lead@example.org")
    kim, lee = add("김"), add("lee")
    as_admin = as_role("admin").client
    as_admin.post(
        f"/targets/{pk('on-call')}/change/?kind=on_call",
        {
            "name": "on-call",
            "member_0": kim.pk,
            "member_1": lee.pk,
            "rotation_starts_at": "2026-11-16T09:00",
            "rotation_days": "7",
            "time_zone": "Asia/Seoul",
        },
    )

    html = text(as_role("viewer").client.get("/targets/"))

    assert "is on call" in html
    assert "<b>not set up</b>" in html
    assert "Reaches no one" in html  # info, whose team is not set up
    assert "Only admins change notifications" in html
    assert "/change/" not in html


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_forms_are_for_admins(role):
    client = as_role(role).client
    cto = pk("cto")

    for path in ("targets/new/person/", f"targets/{cto}/change/", f"targets/{cto}/remove/",
                 "routes/new/", f"routes/{Route.objects.get().pk}/remove/"):  # fmt: skip
        assert client.get(f"/{path}").status_code == 403
        assert client.post(f"/{path}", {"name": "x"}).status_code == 403
    assert client.post(f"/targets/{cto}/test/").status_code == 403


def test_admin_adds_changes_tests_and_removes_a_person():
    client = as_role("admin").client

    added = client.post(
        "/targets/new/person/", {"name": "김 <b>", "email": "k@example.org"}, follow=True
    )
    wrong = client.post("/targets/new/person/", {"name": "김 <b>", "email": "nonsense"})
    tested = client.post(f"/targets/{pk('김 <b>')}/test/", follow=True)
    page = client.get(f"/targets/{pk('김 <b>')}/remove/")
    removed = client.post(f"/targets/{pk('김 <b>')}/remove/", follow=True)

    assert "김 &lt;b&gt;" in text(added)
    assert wrong.status_code == 422
    assert "Not an e-mail address" in text(wrong)
    assert 'value="nonsense"' in text(wrong)
    assert "Delivered to 0 of 1 destination. Waiting: 1" in text(tested)
    assert "No route, step or rotation uses" in text(page)
    assert "removed" in text(removed)


def test_webhook_secret_is_on_one_page_once():
    client = as_role("admin").client
    form = {"name": "hook", "address": "webhook", "webhook_url": "https://1.1.1.1/secretpath"}

    shown = client.post("/targets/new/channel/", form)
    secret = Target.objects.get(name="hook").signing_secret
    changing = client.get(f"/targets/{pk('hook')}/change/")
    page = client.get("/targets/")

    assert secret in text(shown)
    assert "no-store" in shown["Cache-Control"]
    for later in (changing, page):
        assert secret not in text(later)
        assert "secretpath" not in text(later)
    assert "https://1.1.1.1/…" in text(changing)


def test_steps_are_changed_by_a_plain_form():
    client = as_role("admin").client
    form = {"name": "critical", "after_0": "0", "target_0": pk("slack"), "after_1": "20"}

    half = client.post(f"/targets/{pk('critical')}/change/", form)
    whole = client.post(f"/targets/{pk('critical')}/change/", {**form, "target_1": pk("cto")})

    assert "A step needs both" in text(half)
    assert whole.status_code == 302
    steps = Target.objects.get(name="critical").steps.order_by("position")
    assert [(one.after_minutes, one.target.name) for one in steps] == [(0, "slack"), (20, "cto")]


def test_form_of_a_target_that_somebody_else_changed_since_changes_nothing():
    client, path = as_role("admin").client, f"/targets/{pk('critical')}/change/"
    digest = re.search(r'name="seen" value="(\w+)"', text(client.get(path)))[1]
    form = {"name": "critical", "seen": digest, "after_0": "0", "target_0": pk("cto")}
    assert client.post(path, form).status_code == 302

    late = client.post(path, {**form, "target_0": pk("slack")})

    assert late.status_code == 409
    assert "Someone else changed this target" in text(late)
    (step,) = Target.objects.get(name="critical").steps.all()
    assert step.target.name == "cto"


def test_routes_are_added_and_removed():
    client = as_role("admin").client

    added = client.post("/routes/new/", {"event": "nothing.*", "target": pk("slack")}, follow=True)
    twice = client.post("/routes/new/", {"event": "nothing.*", "target": pk("slack")})
    route = Route.objects.get(event="nothing.*")
    removed = client.post(f"/routes/{route.pk}/remove/", follow=True)

    assert "matches no known event" in text(added)
    assert twice.status_code == 422
    assert "no longer goes to slack" in text(removed)


def test_used_target_is_not_removed():
    client = as_role("admin").client

    page = client.get(f"/targets/{pk('cto')}/remove/")
    forced = client.post(f"/targets/{pk('cto')}/remove/")

    assert "is used by critical after 30 min" in text(page)
    assert forced.status_code == 409


def test_host_inside_is_refused_beside_its_field():
    form = {"name": "hook", "address": "webhook", "webhook_url": "https://localhost/x"}

    refused = as_role("admin").client.post("/targets/new/channel/", form)

    assert refused.status_code == 422
    assert "not on the public internet" in text(refused)
