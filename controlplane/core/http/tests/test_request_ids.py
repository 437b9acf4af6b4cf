"""Each response has a request id, which also appears in the log."""

import json
import logging
import re

import pytest
import structlog
from django.test import Client

from controlplane.core.http.tests.callers import Api, as_role, with_token

FRESH = re.compile(r"[0-9a-f]{32}")


def make_client(request_id):
    return Client(headers={"X-Request-ID": request_id})


@pytest.mark.parametrize("request_id", ["a", "req-1.b_C", "7" * 128])
def test_sane_id_of_the_caller_is_kept(request_id):
    response = make_client(request_id).get("/api/nowhere")

    assert response["X-Request-ID"] == request_id


@pytest.mark.parametrize(
    "request_id", ["", " ", "a b", "é", "a\tb", "7" * 129, "<script>", "a;b", "x\x00y"]
)
def test_other_ids_are_replaced(request_id):
    response = make_client(request_id).get("/api/nowhere")

    assert FRESH.fullmatch(response["X-Request-ID"])


def test_two_requests_have_two_ids():
    assert Client().get("/api/x")["X-Request-ID"] != Client().get("/api/x")["X-Request-ID"]


def test_answers_of_the_api_name_the_environment_in_letters_that_a_header_may_have(settings):
    settings.ENVIRONMENT_NAME = "운영 1"

    response = Client().get("/api/nowhere")

    assert response["Switchgear-Environment"] == "%EC%9A%B4%EC%98%81%201"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/switches/", 401),
        ("/api/nowhere", 404),
        ("/nowhere", 404),
        ("/api/schema/", 200),
    ],
)
def test_every_answer_has_one_whatever_its_status(path, status):
    response = Client().get(path)

    assert response.status_code == status
    assert response["X-Request-ID"]


@pytest.mark.django_db
def test_audit_row_carries_the_id_and_the_address_of_the_connection():
    operator = as_role("operator")

    operator.engage(
        "segment:finance", headers={"x_request_id": "mine-1", "x_forwarded_for": "6.6.6.6"}
    )

    row = operator.get("/audit/").json()["results"][0]
    assert (row["request_id"], row["ip"]) == ("mine-1", "127.0.0.1")


@pytest.mark.django_db
def test_log_of_a_mutation_names_request_and_actor_and_keeps_secrets_out(caplog):
    program = with_token("switches:read", "switches:write")
    secret = program.headers["authorization"].removeprefix("Bearer ")
    program.client.cookies["sessionid"] = "the-cookie-itself"
    caplog.set_level(logging.DEBUG)

    program.engage("segment:finance", headers={"x_request_id": "req-9"}, reason="x")
    Api(x_api_key="sg_wrong_password1").post("/switches/segment/finance/undo")

    logged = "\n".join(json.dumps(record.msg, default=str) for record in caplog.records)
    assert '"event": "request.finished"' in logged
    assert '"request_id": "req-9"' in logged
    assert '"actor": "token:ci"' in logged
    for kept_out in (secret, secret.rpartition("_")[2], "the-cookie-itself", "password1"):
        assert kept_out not in logged


def test_id_does_not_stay_bound_after_the_request():
    make_client("req-1").get("/api/nowhere")

    assert "request_id" not in structlog.contextvars.get_contextvars()
