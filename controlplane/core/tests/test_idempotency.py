"""A repeated request gets the first answer and has no second effect; a different one is refused."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone

from controlplane.core.actors import system_actor
from controlplane.core.errors import KeyReused
from controlplane.core.http.tests.callers import (
    Api,
    as_role,
    at_once,
    person,
    signed_in,
    token_text,
)
from controlplane.core.http.tests.sessions import another_session, until_waiting
from controlplane.core.idempotency import services
from controlplane.core.idempotency.models import IdempotencyKey
from controlplane.core.tasks import purge_idempotency_keys

FINANCE = "segment:finance"
KEY = {"idempotency_key": "deploy-42"}


@pytest.fixture
def operator(db):
    return as_role("operator")


def engagements(operator):
    return len(operator.get("/audit/", {"action": "switch.engaged"}).json()["results"])


def test_repeat_gets_the_first_answer_byte_for_byte_and_no_second_effect(operator):
    first = operator.engage(FINANCE, headers=KEY)

    again = operator.engage(FINANCE, headers=KEY)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    assert again["Content-Type"] == first["Content-Type"]
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert engagements(operator) == 1


def test_repeat_gets_the_first_answer_even_after_the_switch_moved_on(operator):
    first = operator.engage(FINANCE, headers=KEY)
    operator.post(
        "/switches/segment/finance/release",
        {"justification": "duplicate charges refunded, queue empty"},
    )

    again = operator.engage(FINANCE, headers=KEY)

    assert again.content == first.content
    assert operator.get("/switches/segment/finance/").json()["state"] == "ramping"


def test_repeat_over_the_other_form_of_the_path_is_a_repeat(operator):
    body = {"reason": "card payments charged twice", "expires_in": "24h"}
    first = operator.post("/switches/segment/finance/engage", body, **KEY)

    again = operator.post("/switches/segment/finance/engage/", body, **KEY)

    assert again.content == first.content


def test_same_key_with_another_body_is_422_and_has_no_effect(operator):
    operator.engage(FINANCE, headers=KEY)

    refused = operator.engage(FINANCE, headers=KEY, expires_in="1h")

    assert refused.status_code == 422
    assert refused.json()["type"] == "urn:switchgear:problem:idempotency-key-reused"
    assert engagements(operator) == 1


def test_order_and_spacing_of_the_body_do_not_make_it_another(operator):
    one = b'{"reason": "card payments charged twice", "expires_in": "24h"}'
    two = b'{"expires_in":"24h","reason":"card payments charged twice"}'
    first = operator.send("post", "/switches/segment/finance/engage", one, **KEY)

    again = operator.send("post", "/switches/segment/finance/engage", two, **KEY)

    assert again.content == first.content


def test_same_key_on_another_path_or_method_is_another_request(operator):
    operator.engage(FINANCE, headers=KEY)

    assert operator.engage("segment:risk", headers=KEY).json()["id"] == "segment:risk"
    described = operator.patch("/switches/segment/finance/", {"owner": "payments"}, **KEY)
    assert described.status_code == 200


def test_same_key_of_another_actor_is_another_request(operator):
    operator.engage(FINANCE, headers=KEY)

    somebody_else = as_role("approver").engage(FINANCE, headers=KEY)

    assert somebody_else.status_code == 409


def test_two_tokens_of_one_name_and_owner_do_not_share_keys(db):
    owner = person("operator")
    one, two = (Api(x_api_key=token_text(owner, ["switches:write"], name="ci")) for _ in range(2))
    one.engage(FINANCE, headers=KEY)

    assert two.engage(FINANCE, headers=KEY).status_code == 409
    assert one.engage(FINANCE, headers=KEY).status_code == 200


def test_error_is_not_stored_so_the_key_can_be_used_once_it_is_mended(operator):
    assert operator.engage(FINANCE, headers=KEY, reason="x").status_code == 400

    assert operator.engage(FINANCE, headers=KEY).status_code == 200
    assert IdempotencyKey.objects.count() == 1


def test_conflict_is_not_stored(operator):
    operator.engage(FINANCE)
    assert operator.engage(FINANCE, headers=KEY).status_code == 409
    operator.post("/switches/segment/finance/undo")

    assert operator.engage(FINANCE, headers=KEY).status_code == 200


def test_dry_run_is_not_stored(operator):
    assert operator.engage(FINANCE, headers=KEY, dry_run=True).json()["dry_run"] is True

    assert operator.engage(FINANCE, headers=KEY).json()["state"] == "engaged"


def test_pending_answer_is_a_2xx_and_comes_again_as_it_was(operator):
    operator.engage("global:all")
    release = {"justification": "duplicate charges refunded, queue empty"}
    first = operator.post("/switches/global/all/release", release, **KEY)

    again = operator.post("/switches/global/all/release", release, **KEY)

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content


def test_key_is_forgotten_after_24_hours(operator):
    operator.engage(FINANCE, headers=KEY)
    day = timedelta(hours=24)
    IdempotencyKey.objects.update(created_at=timezone.now() - day + timedelta(seconds=30))
    assert operator.engage(FINANCE, headers=KEY).status_code == 200
    IdempotencyKey.objects.update(created_at=timezone.now() - day)

    assert operator.engage(FINANCE, headers=KEY).status_code == 409
    assert operator.engage("segment:risk", headers=KEY).status_code == 200


def test_purge_deletes_what_is_past_its_day_and_nothing_else(operator):
    for name in ("a", "b", "c"):
        operator.engage(f"segment:{name}", headers={"idempotency_key": name})
    now = timezone.now()
    IdempotencyKey.objects.filter(key="a").update(created_at=now - timedelta(hours=24))
    IdempotencyKey.objects.filter(key="b").update(created_at=now - timedelta(hours=23, minutes=59))

    assert purge_idempotency_keys(now) == 1
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == {"b", "c"}


@pytest.mark.parametrize("key", ["", " ", "a b", "k" * 201, "é", "tab\t", "\x7f", "키"])
def test_unusable_key_is_named(operator, key):
    response = operator.engage(FINANCE, headers={"idempotency_key": key})

    assert response.status_code == 400
    assert "Idempotency-Key" in response.json()["errors"]
    assert engagements(operator) == 0


@pytest.mark.parametrize("key", ["k", "k" * 200, "!~'\"%s;--{}\\"])
def test_usable_key_is_kept_as_it_is(operator, key):
    operator.engage(FINANCE, headers={"idempotency_key": key})

    assert IdempotencyKey.objects.get().key == key


def test_refused_caller_leaves_no_trace(db):
    as_role("viewer").engage(FINANCE, headers=KEY)
    Api().engage(FINANCE, headers=KEY)

    assert not IdempotencyKey.objects.exists()


@pytest.mark.django_db
def test_claim_takes_any_path():
    now = timezone.now()
    actor = system_actor("test")
    for path in ("/x" * 1000, "/nul\x00", "/결제", "/\ud800"):
        key, other = (
            services.build_key(actor, "POST", path, "k", {"a": number}) for number in (1, 2)
        )
        response = services.StoredResponse(200, "{}")
        with transaction.atomic():
            services.store_response(services.claim_key(key, now), response)

        assert services.claim_key(key, now).earlier == response
        with pytest.raises(KeyReused):
            services.claim_key(other, now)


@pytest.mark.django_db(transaction=True)
def test_twin_that_comes_meanwhile_waits_for_the_first_answer():
    user = person("operator")
    callers = [signed_in(user), signed_in(user)]

    with another_session() as session, ThreadPoolExecutor(1) as pool:
        session.execute("SELECT * FROM switches_publication FOR UPDATE")
        twins = [partial(caller.engage, FINANCE, headers=KEY) for caller in callers]
        answers = pool.submit(at_once, *twins)
        until_waiting(2)
        session.rollback()
        one, two = answers.result(timeout=10)

    assert (one.status_code, two.status_code) == (200, 200)
    assert one.content == two.content
    assert sorted("Idempotent-Replayed" in answer for answer in (one, two)) == [False, True]
    assert engagements(callers[0]) == 1


@pytest.mark.django_db(transaction=True)
def test_twin_of_one_that_fails_does_the_work_itself():
    user = person("operator")
    callers = [signed_in(user), signed_in(user)]
    callers[0].engage(FINANCE)

    with another_session() as session, ThreadPoolExecutor(1) as pool:
        session.execute("SELECT * FROM switches_publication FOR UPDATE")
        twins = [partial(caller.engage, FINANCE, headers=KEY) for caller in callers]
        answers = pool.submit(at_once, *twins)
        until_waiting(2)
        session.rollback()
        statuses = [answer.status_code for answer in answers.result(timeout=10)]

    assert statuses == [409, 409]
    assert not IdempotencyKey.objects.exists()
