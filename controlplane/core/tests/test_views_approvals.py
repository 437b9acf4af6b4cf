"""The approvals page: a second person decides, in the browser."""

import re
from datetime import timedelta

import pytest

from controlplane.core.approvals import reviews
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in

pytestmark = pytest.mark.django_db
REASON = "OpenAI 5xx on completions since 02:10"


@pytest.fixture
def kim():
    return person("approver", "kim")


@pytest.fixture
def waiting(kim):
    """Request kim's release of everything through the API; return the approval's id."""
    api = signed_in(kim)
    api.engage("global:all")
    body = {"justification": "duplicate charges refunded, queue empty"}
    return api.post("/switches/global/all/release", body).json()["approval"]["id"]


def text(response):
    return response.content.decode()


def test_pending_request_tells_who_asks_what_and_why(waiting):
    html = text(as_role("viewer").client.get("/approvals/"))

    for part in ("1 waiting", "global:all", "duplicate charges refunded", "kim", "expires in"):
        assert part in html


def test_approver_sees_buttons_and_others_are_told_why_not(waiting, kim):
    approve = f"/approvals/{waiting}/approve/"

    assert approve in text(as_role("admin").client.get("/approvals/"))
    for role in ("viewer", "operator"):
        html = text(as_role(role).client.get("/approvals/"))
        assert approve not in html
        assert "Only approvers, leads of teams and admins approve" in html


def test_own_request_can_be_withdrawn_but_not_approved(waiting, kim):
    client = signed_in(kim).client

    html = text(client.get("/approvals/"))
    refused = client.post(f"/approvals/{waiting}/approve/")

    assert "a second person has to approve it" in html
    assert f"/approvals/{waiting}/approve/" not in html
    assert refused.status_code == 403
    withdrawn = client.post(f"/approvals/{waiting}/deny/", follow=True)
    assert "withdrawn" in text(withdrawn)
    assert Approval.objects.get().state == "denied"


def test_second_person_approves_and_the_ramp_begins(waiting):
    client = as_role("admin").client

    response = client.post(
        f"/approvals/{waiting}/approve/", {"comment": "seen the graphs"}, follow=True
    )

    html = text(response)
    assert "approved" in html
    assert "seen the graphs" in html
    assert "No pending approvals" in html
    assert AuditEntry.objects.filter(action="ramp.started", target="global:all").exists()


def test_second_person_denies_and_nothing_changes(waiting):
    as_role("admin").client.post(f"/approvals/{waiting}/deny/", {"comment": "not yet"})

    assert Approval.objects.get().state == "denied"
    assert not AuditEntry.objects.filter(action="ramp.started").exists()


@pytest.mark.parametrize("comment", ["", " \x00 "])
def test_denial_without_a_comment_decides_nothing(waiting, comment):
    client = as_role("admin").client

    response = client.post(f"/approvals/{waiting}/deny/", {"comment": comment})

    assert response.status_code == 422
    assert "Enter a reason to deny it" in text(response)
    assert Approval.objects.get().state == "pending"


def test_approve_comes_first_and_denying_takes_a_step_of_its_own(waiting):
    html = text(as_role("admin").client.get("/approvals/"))

    approving, denying = (
        html.index(f"/approvals/{waiting}/approve/"),
        html.index('class="approval__deny"'),
    )
    assert approving < denying < html.index(f"/approvals/{waiting}/deny/")
    assert "formaction" not in html


def test_request_is_told_in_words_of_people(waiting, kim):
    signed_in(kim).post("/switches/segment/finance/engage", {"reason": REASON, "expires_in": "1h"})
    body = {"expires_in": "permanent", "reason": REASON}
    signed_in(kim).post("/switches/segment/finance/extend", body)
    client = as_role("admin").client

    html = text(client.get("/approvals/"))

    assert re.search(
        r"<del>[0-9]+ [A-Z][a-z]+ [0-9]{4} [0-9:]+ UTC</del><br>\s*<ins>never</ins>", html
    )
    assert re.search(r'<td dir="auto">\s*in steps\s*</td>', html)
    for word in (">episode<", ">permanent<", ">true<", "user:kim"):
        assert word not in html
    client.post(f"/approvals/{waiting}/approve/")
    assert "user:" not in text(client.get("/approvals/"))


def create_request(number, state="pending"):
    return Approval.objects.create(
        kind="permanent",
        target=f"feature:f{number}",
        summary=f"Keep feature:f{number} engaged",
        state=state,
        requested_at=db_now(),
    )


@pytest.mark.parametrize(("place", "page"), [(0, 1), (99, 1), (100, 2)])
def test_link_to_a_pending_request_leads_to_the_page_that_shows_it(place, page):
    found = [create_request(number) for number in range(101)]
    client = as_role("viewer").client

    response = client.get(found[place].page_url)

    anchor = f"approval-{found[place].pk}"
    assert response["Location"] == f"/approvals/?page={page}#{anchor}"
    assert f'id="{anchor}"' in text(client.get(response["Location"]))


def test_link_to_a_decided_request_shows_it_above_older_ones():
    found = [create_request(number, "approved") for number in range(40)]
    client = as_role("viewer").client

    html = text(client.get(found[3].page_url, follow=True))

    assert f'id="approval-{found[3].pk}"' in html
    assert f'id="approval-{found[4].pk}"' not in html
    assert "Newest" in html


@pytest.mark.parametrize("role", ["viewer", "operator"])
@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_server_refuses_whoever_may_not(waiting, role, verdict):
    assert as_role(role).client.post(f"/approvals/{waiting}/{verdict}/").status_code == 403
    assert Approval.objects.get().state == "pending"


def test_decided_already_is_told(waiting):
    as_role("admin").client.post(f"/approvals/{waiting}/approve/")

    response = signed_in(person("approver", "ayse")).client.post(f"/approvals/{waiting}/deny/")

    assert response.status_code == 409
    assert "This was already approved by user:a-admin." in text(response)


def test_lapsed_request_is_no_longer_offered(waiting):
    Approval.objects.update(expires_at=db_now() - timedelta(seconds=1))

    assert "No pending approvals" in text(as_role("admin").client.get("/approvals/"))


def test_unknown_request_is_not_found():
    assert as_role("admin").client.post("/approvals/999/approve/").status_code == 404


def test_risk_and_what_would_change_are_shown(waiting):
    html = text(as_role("viewer").client.get("/approvals/"))

    assert "Critical risk" in html
    assert "<del>engaged</del>" in html
    assert "<ins>released</ins>" in html


def test_double_click_is_no_error(waiting):
    client = as_role("admin").client

    for _ in range(2):
        response = client.post(f"/approvals/{waiting}/approve/", follow=True)
        assert response.status_code == 200

    assert AuditEntry.objects.filter(action="ramp.started").count() == 1


def test_own_reason_is_changed_on_the_page_and_the_old_button_looks_again(waiting, kim):
    client = signed_in(kim).client

    html = text(
        client.post(f"/approvals/{waiting}/edit/", {"reason": "결제 복구 <b>"}, follow=True)
    )

    assert "requested again" in html
    assert "결제 복구 &lt;b&gt;" in html
    assert f"replaces no. {waiting}" in html
    refused = as_role("admin").client.post(f"/approvals/{waiting}/approve/")
    assert refused.status_code == 409
    assert "The request was edited. Review it again" in text(refused)


def test_blank_reason_is_told_and_nothing_changed(waiting, kim):
    response = signed_in(kim).client.post(f"/approvals/{waiting}/edit/", {"reason": " "})

    assert response.status_code == 400
    assert "Enter a reason" in text(response)
    assert Approval.objects.get().state == "pending"


def test_nobody_else_edits(waiting):
    response = as_role("admin").client.post(f"/approvals/{waiting}/edit/", {"reason": "mine now"})

    assert response.status_code == 403


def test_review_is_signed_on_the_page_by_somebody_else(kim):
    now = db_now()
    review = reviews.open_review(
        rule="payments",
        reason="both charge twice, INC-12",
        target="segment:finance",
        diff={"rules": ["payments", "banks"]},
        actor=kim.as_actor(),
        now=now,
    )
    sign = f"/reviews/{review.pk}/sign/"

    assert sign not in text(signed_in(kim).client.get("/approvals/"))
    client = as_role("admin").client
    html = text(client.get("/approvals/"))
    assert sign in html
    assert f"/approvals/{review.pk}/deny/" not in html
    signed = text(client.post(sign, {"comment": "INC-12 read"}, follow=True))
    assert "Signed" in signed
    assert "INC-12 read" in signed


def test_deciding_is_never_done_by_a_link(waiting):
    assert as_role("admin").client.get(f"/approvals/{waiting}/approve/").status_code == 405


def test_form_without_its_csrf_token_is_refused(waiting):
    client = signed_in(person("admin"), csrf=True).client

    assert client.post(f"/approvals/{waiting}/approve/").status_code == 403
    assert Approval.objects.get().state == "pending"


def test_older_decisions_are_paged():
    now = db_now()
    Approval.objects.bulk_create(
        Approval(
            kind="permanent",
            target=f"segment:s{number:02}",
            summary=f"Keep segment:s{number:02} engaged",
            reason="Oracle corrupts writes, INC-9",
            state="denied",
            requested_by="user:kim",
            requested_at=now,
            expires_at=now,
            decided_at=now,
        )
        for number in range(30)
    )
    client = as_role("viewer").client
    ids = list(Approval.objects.order_by("-id").values_list("pk", flat=True))

    first, older = client.get("/approvals/"), client.get(f"/approvals/?before={ids[24]}")

    assert f"before={ids[24]}" in text(first)
    assert text(first).count("Keep segment:s") == 25
    assert text(older).count("Keep segment:s") == 5
