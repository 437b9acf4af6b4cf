"""The emergency page: given orders, wrong codes, withdrawn orders, and no word too many."""

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from html import unescape
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4
from zoneinfo import ZoneInfo

import httpx
import pytest

from controlplane.accounts.emergency_codes import codes
from controlplane.core.signatures import SigningKey
from controlplane.dataplane.application import Application
from controlplane.dataplane.config import Config
from controlplane.dataplane.emergency.page.form import make_nonce
from controlplane.dataplane.memory.credentials import CodeHash
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.relay.upstream_causes import make_unreachable_cause
from controlplane.dataplane.storage.order_journal import order_key
from controlplane.dataplane.tests.served import REPORTER, ask, copy, plane
from controlplane.dataplane.tests.test_order_set import order
from switches.emergency.orders import ENGAGE, Order, Orderer

KEY = order_key("a secret")
SALT = b"s" * 16
CODE = "ABCDE-FGHIJ-KLMNO-PQRST-UVWXY"
CODES = {"kim": CodeHash(7, SALT, codes.hash_code(CODE, SALT))}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
READY = "Errors or timeouts seen at 02:10 UTC; cause not found yet"
WHO = {"name": "kim", "code": CODE.lower().replace("-", " ")}
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def served(tmp_path: Path) -> Plane:
    """A plane whose database is away, with a switch engaged, and kim's code."""
    made = plane("segment:finance")
    made.state.install_tokens(1, made.state.tokens or {}, CODES)
    made.state.install_known(1, frozenset({"segment:finance", "feature:chat", "feature:mail"}))
    made.configure(
        Config(
            *("postgresql://", None, "redis://"),
            folder=tmp_path,
            plane="dp-1",
            order_keys=(KEY,),
            environment_name="production",
            public_url="https://switchgear.example.org",
        )
    )
    return made


def send(
    served: Plane,
    method: str = "GET",
    path: str = "/emergency/",
    content: bytes | None = None,
    headers: Mapping[str, str] = FORM,
) -> httpx.Response:
    async def sent() -> httpx.Response:
        transport = httpx.ASGITransport(Application(served))
        async with httpx.AsyncClient(transport=transport, base_url="http://plane") as client:
            return await client.request(method, path, content=content, headers=headers)

    return asyncio.run(sent())


def post(served: Plane, **fields: str) -> httpx.Response:
    form = {"action": "engage", "nonce": make_nonce(), "expires_in": "24h", **fields}
    return send(served, "POST", content=urlencode(form).encode())


def engage(served: Plane, **fields: str) -> httpx.Response:
    return post(served, **{"switch": "feature:chat", "ready_reason": READY, **WHO, **fields})


def text(response: httpx.Response) -> str:
    """Return the words of a page, without its style."""
    body = response.text.partition("</style>")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def field_value(response: httpx.Response, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', response.text)
    assert found is not None
    return unescape(found[1])


def open_orders(served: Plane) -> list[Order]:
    return list(served.state.orders.open.values())


def test_page_names_state_and_age_of_what_it_knows(served: Plane) -> None:
    served.state.confirm(served.state.now() - 184)

    response = send(served)

    said = text(response)
    assert response.status_code == 200
    assert "PostgreSQL does not respond." in said
    assert "confirmed 3 min 4 s ago" in said
    assert "1 switch is engaged" in said
    assert "production" in said


def test_page_says_when_all_is_well_and_links_the_console(served: Plane) -> None:
    served.state.database_reachable = True
    served.state.install_copy(copy(18), served.state.now())

    response = send(served)

    assert "PostgreSQL responds. You can also use the console" in text(response)
    assert 'href="https://switchgear.example.org"' in response.text
    assert "Nothing is engaged" in text(response)


def test_page_of_a_read_only_database_and_of_a_plane_that_knows_nothing(served: Plane) -> None:
    served.state.database_reachable = served.state.database_read_only = True
    assert "PostgreSQL accepts no changes" in text(send(served))

    served.state.copy = None
    assert "This data plane can't check codes yet" in text(send(served))


def test_page_needs_nothing_but_itself(served: Plane) -> None:
    response = send(served)

    (style,) = re.findall(r"<style>(.*?)</style>", response.text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = response.headers["Content-Security-Policy"]
    assert f"style-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script" not in policy
    assert "<script" not in response.text
    assert not re.findall(r"\s(?:src|style|on\w+)=", response.text)
    assert set(re.findall(r'(?:href|action)="([^"#d][^"]*)"', response.text)) == {"/emergency/"}
    assert response.headers.get_list("Content-Security-Policy") == [policy]
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["Referrer-Policy"] == "same-origin"
    assert "Set-Cookie" not in response.headers


def test_path_without_a_slash_leads_to_the_page(served: Plane) -> None:
    response = send(served, path="/emergency")

    assert (response.status_code, response.headers["Location"]) == (308, "/emergency/")


def test_order_is_in_force_and_the_result_is_told_in_plain_words(served: Plane) -> None:
    response = engage(served, reason="INC-4411")

    assert response.status_code == 200
    (order,) = open_orders(served)
    assert (order.switch, order.expires_in) == ("feature:chat", "24h")
    assert order.reason == f"{READY}. INC-4411"
    assert order.by == Orderer("user", "kim", 7)
    assert served.state.copy is not None
    assert served.state.copy.entries["feature:chat"].emergency == str(order.id)
    said = text(response)
    assert "feature: chat is engaged" in said
    assert "by kim on dp-1" in said
    assert "Stored on dp-1, the only data plane that it knows." in said
    assert "When PostgreSQL responds again, it becomes an ordinary engagement" in said
    assert "another person reviews it" in said
    assert "Withdraw the order" in said
    assert CODE[:5] not in response.text.replace("ABCDE-FGHIJ-…", "")


def test_order_while_all_is_well_is_released_in_the_console(served: Plane) -> None:
    served.state.database_reachable = True

    assert "Within seconds it becomes an ordinary engagement" in text(engage(served))


def test_engaged_switch_stays_engaged_and_the_page_says_so(served: Plane) -> None:
    said = text(engage(served, switch="segment:finance"))

    assert "It was engaged already" in said
    assert len(open_orders(served)) == 1


def test_reload_and_a_double_tap_are_the_same_order(served: Plane) -> None:
    nonce = make_nonce()

    first, second = engage(served, nonce=nonce), engage(served, nonce=nonce)

    assert (first.status_code, second.status_code) == (200, 200)
    assert "feature: chat is engaged" in text(second)
    assert len(open_orders(served)) == 1


def test_going_back_and_choosing_another_switch_is_another_order(served: Plane) -> None:
    nonce = make_nonce()

    engage(served, nonce=nonce)
    second = engage(served, nonce=nonce, switch="feature:mail")

    assert "feature: mail is engaged" in text(second)
    assert {order.switch for order in open_orders(served)} == {"feature:chat", "feature:mail"}


def test_form_sent_again_after_its_order_was_withdrawn_engages_nothing(served: Plane) -> None:
    nonce = make_nonce()
    engage(served, nonce=nonce)
    (order,) = open_orders(served)
    post(served, action="withdraw", order=str(order.id), reason="False alarm", **WHO)

    again = engage(served, nonce=nonce)

    assert open_orders(served) == []
    assert "This order for feature: chat has ended" in text(again)
    assert "The switch is released now." in text(again)
    assert "It was withdrawn." in text(again)


@pytest.mark.parametrize("who", [{"name": "kim"}, {"name": "nobody"}, {"name": ""}])
def test_wrong_code_changes_nothing_and_keeps_what_was_entered(
    served: Plane, who: dict[str, str]
) -> None:
    response = engage(
        served, **{"reason": "INC-4411", "expires_in": "4h", "code": "WRONG-CODE7", **who}
    )

    assert response.status_code == 401
    assert open_orders(served) == []
    assert "Nothing was engaged" in text(response)
    assert "The user name or the emergency code is wrong." in text(response)
    assert "INC-4411</textarea>" in response.text
    assert 'value="4h" checked' in response.text
    assert f'value="{READY}" checked' in response.text
    assert 'value="feature:chat" checked' in response.text
    assert "WRONG-CODE7" not in response.text
    assert 'name="grant"' not in response.text


def test_after_five_wrong_codes_the_page_says_when_to_try_again(served: Plane) -> None:
    for _ in range(5):
        assert engage(served, code="WRONG").status_code == 401

    response = engage(served)

    assert response.status_code == 429
    assert 0 < int(response.headers["Retry-After"]) <= 60
    assert re.search(r"Try again in \d+ seconds?, at \d\d:\d\d:\d\d", text(response))
    assert open_orders(served) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"switch": "", "typed_switch": "nonsense key!"}, "Must be the id of a switch"),
        ({"switch": ""}, "Choose or type the switch to stop."),
        ({"ready_reason": ""}, "A reason is required."),
        ({"ready_reason": "other", "reason": "broken"}, "The reason is too"),
        ({"ready_reason": "other", "reason": "stop it now"}, "too vague"),
        ({"reason": "x" * 2000}, "characters"),
        ({"expires_in": "100d"}, "30 days"),
        ({"expires_in": "soon"}, "a whole number and a unit"),
    ],
)
def test_same_rules_as_in_the_console(served: Plane, fields: dict[str, str], said: str) -> None:
    response = engage(served, **fields)

    assert response.status_code == 400
    assert said in text(response)
    assert "Nothing was engaged" in text(response)
    assert open_orders(served) == []
    assert 'class="problem"' in response.text


def test_corrected_form_needs_no_second_code(served: Plane) -> None:
    refused = engage(served, ready_reason="other", reason="broken")
    assert 'name="code"' not in refused.text

    response = engage(served, name="", code="", grant=field_value(refused, "grant"))

    assert "feature: chat is engaged" in text(response)
    assert open_orders(served)[0].by.name == "kim"


def test_key_without_a_scope_is_asked_for(served: Plane) -> None:
    response = engage(served, switch="", typed_switch="finance")

    assert response.status_code == 400
    assert "Which finance do you mean?" in text(response)
    assert 'name="switch" value="segment:finance"' in response.text
    assert open_orders(served) == []


def test_forged_or_old_grant_asks_for_the_code(served: Plane) -> None:
    grant = field_value(engage(served), "grant")
    forged = grant[:-1] + ("0" if grant[-1] != "0" else "1")

    response = engage(served, switch="feature:mail", name="", code="", grant=forged)

    assert response.status_code == 401
    assert "Enter your name and code again" in text(response)
    assert len(open_orders(served)) == 1


def test_everything_is_stopped_only_after_a_second_step(served: Plane) -> None:
    asked = engage(served, switch="", typed_switch="global:all", reason="INC-4411")

    assert open_orders(served) == []
    assert "Stop all traffic in production?" in text(asked)
    fields = {
        name: field_value(asked, name)
        for name in ("nonce", "switch", "ready_reason", "reason", "expires_in", "grant")
    }
    wrong = post(served, **fields, confirm="yes")
    assert wrong.status_code == 400
    assert "Type production or global." in text(wrong)
    assert open_orders(served) == []

    done = post(served, **fields, confirm=" Production ")

    assert "global: all is engaged" in text(done)
    (order,) = open_orders(served)
    assert (order.switch, order.reason) == ("global:all", f"{READY}. INC-4411")


def test_order_that_no_disk_holds_is_not_confirmed_and_can_be_sent_again(
    served: Plane, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    served.emergency_orders.configure(
        Config("postgresql://", None, "redis://", folder=tmp_path / "file", order_keys=(KEY,))
    )
    nonce = make_nonce()

    response = engage(served, nonce=nonce)

    assert response.status_code == 503
    assert "Not confirmed" in text(response)
    assert "can't store it on its disk" in text(response)
    assert "Nothing was engaged" not in text(response)
    assert field_value(response, "nonce") == nonce


def test_ramping_switch_can_be_chosen(served: Plane) -> None:
    assert served.state.published is not None
    ramping = replace(served.state.published.entries["segment:finance"], allow_percent=Decimal(25))
    served.state.install_copy(
        Copy.render(served.state.published.publication, [ramping]), served.state.now()
    )

    page = send(served)

    assert "Ramping : 25 % is allowed." in text(page)
    assert 'name="switch" value="segment:finance"' in page.text
    assert "segment: finance is engaged" in text(engage(served, switch="segment:finance"))


def test_bad_reason_is_refused_before_the_second_step(served: Plane) -> None:
    response = engage(served, switch="", typed_switch="global:all", ready_reason="", reason="x")

    assert response.status_code == 400
    assert "Stop all traffic" not in text(response)


def test_before_a_code_no_reason_and_no_name_is_shown(served: Plane) -> None:
    engage(served, reason="Acme was billed twice")
    post(served, action="withdraw", order=str(open_orders(served)[0].id), reason="Mine", **WHO)
    engage(served, switch="feature:mail", reason="Acme was billed twice")

    response = send(served)

    said = text(response)
    assert "feature: mail" in said
    assert "by an emergency order" in said
    for secret in ("Acme", "kim", "dp-1", "Withdraw this order", "Mine", "OpenAI"):
        assert secret not in said
    assert served.state.copy is not None
    assert served.state.copy.entries["segment:finance"].reason not in said


def test_code_shows_reasons_people_and_planes(served: Plane) -> None:
    engage(served, reason="Acme was billed twice")

    response = post(served, action="show", **WHO)

    said = text(response)
    assert response.status_code == 200
    assert "Acme was billed twice" in said
    assert "Ordered by kim on dp-1" in said
    assert "Stored on dp-1" in said
    assert served.state.copy is not None
    assert served.state.copy.entries["segment:finance"].reason in said
    assert "Withdraw this order" in said
    assert "Close this tab when you are done" in said


def test_effect_counts_the_instances_that_apply_an_order(served: Plane) -> None:
    engage(served)
    unseen = text(post(served, action="show", **WHO))
    assert "No instance has polled this data plane lately" in unseen

    applied = served.state.copy
    assert applied is not None
    mark = applied.epoch + b".17" + applied.suffix
    buffer = served.state.ledger.presence_buffer
    post(served, action="show", **WHO)  # From now on the suffix is known.
    buffer.record_presence(b"core/a", mark, applied)
    buffer.record_presence(b"core/b", applied.epoch + b".17", applied)

    said = text(post(served, action="show", **WHO))

    assert "Applied by 1 of 2 instances seen by this data plane." in said


def test_wrong_code_shows_no_details(served: Plane) -> None:
    engage(served, reason="Acme was billed twice")

    response = post(served, action="show", name="kim", code="WRONG")

    assert response.status_code == 401
    assert "Details are not shown" in text(response)
    assert "Acme" not in response.text


def test_withdrawn_order_lets_traffic_flow_and_stays_listed(served: Plane) -> None:
    engaged = engage(served)
    (order,) = open_orders(served)

    response = post(
        served,
        action="withdraw",
        order=str(order.id),
        reason="False alarm",
        grant=field_value(engaged, "grant"),
    )

    said = text(response)
    assert response.status_code == 200
    assert open_orders(served) == []
    assert "The order for feature: chat is withdrawn" in said
    assert "its traffic flows again" in said
    assert "by kim : False alarm" in said


def test_withdrawal_never_claims_that_traffic_flows_while_it_does_not(served: Plane) -> None:
    engage(served, switch="segment:finance")
    (published,) = open_orders(served)
    said = text(
        post(served, action="withdraw", order=str(published.id), reason="False alarm", **WHO)
    )
    assert "It stays engaged by the console: release it there." in said

    engage(served)
    engage(served, reason="Once more")
    first, _ = open_orders(served)
    said = text(post(served, action="withdraw", order=str(first.id), reason="False alarm", **WHO))
    assert "It stays engaged by another emergency order, of kim." in said


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"reason": " "}, 400, "A reason is required."),
        ({"code": "WRONG"}, 401, "code is wrong"),
        ({"order": str(uuid4())}, 404, "There is no emergency order"),
        ({"order": "x"}, 400, "UUID"),
    ],
)
def test_refused_withdrawal_keeps_the_order(
    served: Plane, fields: dict[str, str], status: int, said: str
) -> None:
    engage(served)
    (order,) = open_orders(served)
    sent = {"order": str(order.id), "reason": "False alarm, INC-1", **WHO, **fields}

    response = post(served, action="withdraw", **sent)

    assert response.status_code == status
    assert said in text(response)
    assert "Nothing was withdrawn" in text(response)
    assert open_orders(served) == [order]
    if "code" in fields:
        assert "False alarm, INC-1</textarea>" in response.text
        assert f'name="order" value="{order.id}"' in response.text


def test_unregistered_switch_is_engaged_with_a_warning(served: Plane) -> None:
    said = text(engage(served, switch="", typed_switch="feature:chatt"))

    assert "feature: chatt is engaged" in said
    assert "No switch feature:chatt is registered." in said
    assert "Similar ones: feature:chat" in said


def test_hostile_texts_are_escaped(served: Plane) -> None:
    hostile = Order(
        id=uuid4(),
        action=ENGAGE,
        switch="feature:mail",
        reason=HOSTILE,
        expires_in="24h",
        by=Orderer("user", HOSTILE, 9),
        at=served.state.wall(),
        plane=HOSTILE,
    )
    served.state.add_orders([hostile])
    served.state.install_known(2, frozenset({f"feature:{HOSTILE}"}))
    served.emergency_orders.record_holder(HOSTILE, [hostile.id])

    pages = [
        send(served),
        post(served, action="show", **WHO),
        engage(served, code="WRONG", reason=HOSTILE, name=HOSTILE, switch=HOSTILE),
        engage(served, switch="", typed_switch=HOSTILE, reason=f"</textarea>{HOSTILE}"),
        engage(served, ready_reason=HOSTILE, expires_in=HOSTILE),
        post(served, action=HOSTILE),
        post(served, **{HOSTILE: "x"}),
    ]

    for page in pages:
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<script" not in page.text
        assert page.text.count("</textarea>") == page.text.count("<textarea")
    assert "&lt;script&gt;" in pages[1].text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[broken"}, 403),
        ({"Origin": "https://plane"}, 200),
        ({"Origin": "https://switchgear.example.org"}, 200),
        ({"Origin": "https://lb.example", "X-Forwarded-Host": "lb.example"}, 200),
        ({"Origin": "https://evil.example", "X-Forwarded-Host": ""}, 403),
        ({}, 200),
    ],
)
def test_form_of_another_site_is_refused(
    served: Plane, headers: dict[str, str], status: int
) -> None:
    fields = {"nonce": make_nonce(), "switch": "feature:chat", "ready_reason": READY, **WHO}
    sent = {"Content-Type": FORM["Content-Type"], **headers}

    response = send(served, "POST", content=urlencode(fields).encode(), headers=sent)

    assert response.status_code == status
    assert len(open_orders(served)) == (status == 200)


@pytest.mark.parametrize(
    ("method", "content", "headers", "status"),
    [
        ("POST", b"{}", {"Content-Type": "application/json"}, 400),
        ("POST", b"", {}, 400),
        ("POST", b"action=show&x=1", FORM, 400),
        ("POST", b"reason=" + b"x" * 70_000, FORM, 413),
        ("PUT", b"", FORM, 405),
        ("DELETE", None, {}, 405),
    ],
)
def test_malformed_request_is_answered_with_a_page(
    served: Plane, method: str, content: bytes | None, headers: dict[str, str], status: int
) -> None:
    response = send(served, method, content=content, headers=headers)

    assert response.status_code == status
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "Open the page" in response.text
    assert "sha256-" in response.headers["Content-Security-Policy"]


def test_missing_fields_are_named(served: Plane) -> None:
    response = send(served, "POST", content=urlencode(WHO).encode())

    assert response.status_code == 400
    assert "Choose or type the switch to stop." in text(response)


def test_long_lists_are_cut_and_counted(served: Plane) -> None:
    many = [f"feature:f{number}" for number in range(250)]
    served.state.install_copy(copy(18, *many), served.state.now())

    said = text(send(served))

    assert "250 switches are engaged" in said
    assert "And 50 more." in said


def test_times_are_in_the_zone_of_the_installation(served: Plane, tmp_path: Path) -> None:
    served.emergency_page.configure(
        Config(
            *("postgresql://", None, "redis://"),
            folder=tmp_path,
            order_keys=(KEY,),
            time_zone="Asia/Seoul",
        )
    )
    engage(served)
    ends = open_orders(served)[0].expiry.expires_at.astimezone(ZoneInfo("Asia/Seoul"))

    assert f"Until {ends:%-d %b %H:%M} KST" in text(send(served))


def test_switches_that_instances_check_are_suggested_and_known(served: Plane) -> None:
    document = {
        "service": "core",
        "instance": "a1",
        "boot": str(uuid4()),
        "started_at": "2026-11-28T02:00:00Z",
        "seq": 1,
        "sent_at": "2026-11-28T02:10:00Z",
        "checks": [{"switch": "feature:nl2sql", "allowed": 3, "blocked": 0}],
    }
    headers = {"X-API-Key": REPORTER}
    ask(served, "POST", "/api/v1/report", headers, content=json.dumps(document).encode())

    page = send(served).text
    assert 'value="feature:nl2sql"' in page
    said = text(engage(served, switch="feature:nl2sql"))
    assert "nl2sql is engaged" in said
    assert "is registered" not in said


@pytest.fixture
def relay(served: Plane) -> Plane:
    """The same as a relay that its upstream reaches, with an order of another data plane."""
    served.emergency_orders.relay_key = SigningKey.generate()
    served.state.database_reachable = True
    served.state.add_orders([order(1, "feature:mail")])
    return served


def test_page_of_a_relay_says_what_it_is(relay: Plane) -> None:
    assert "This is the relay dp-1 . Its upstream reports: PostgreSQL responds." in text(
        send(relay)
    )


def test_page_of_a_relay_that_is_cut_off_says_since_when_and_what_an_order_does(
    relay: Plane,
) -> None:
    relay.state.confirm(relay.state.now() - 180)
    relay.state.upstream = make_unreachable_cause(["http://console:8000"], "no route")
    relay.state.database_reachable = False

    said = text(send(relay))

    assert "This is the relay dp-1 , and it has heard nothing new from its upstream since" in said
    assert "at once in this region, and elsewhere once the upstream has it" in said
    assert "What you see was confirmed 3 min ago." in said
    assert "PostgreSQL" not in said
    assert "console:8000" not in said


def test_relay_offers_to_withdraw_only_what_was_given_to_it(relay: Plane) -> None:
    given = text(engage(relay))
    assert "feature: chat is engaged" in given

    said = text(post(relay, action="show", **WHO))

    assert said.count("Withdraw this order") == 1
    assert said.count("It was not given to this relay: withdraw it on a data plane.") == 1
    other = post(relay, action="withdraw", order=str(order(1).id), reason="no more errors", **WHO)
    assert other.status_code == 409
    assert "given on dp-1" in text(other)


def test_page_of_a_relay_that_knows_nothing_names_its_upstream() -> None:
    made = Plane()
    made.emergency_orders.relay_key = SigningKey.generate()

    said = text(send(made))

    assert "This relay can't check codes yet: its upstream has not responded" in said
