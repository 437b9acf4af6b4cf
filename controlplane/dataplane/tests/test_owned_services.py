"""Services that teams own: others' tokens get answers, but count for nothing and report nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controlplane.dataplane.memory.callers import TokenCallers, TokenUse
from controlplane.dataplane.memory.credentials import Credential
from controlplane.dataplane.memory.ownership import NO_OWNERS, OwnershipTable, build_table
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.copies import SAVED, disk
from controlplane.dataplane.tests.served import READER, REPORTER, ask, credential, plane

BOOT = "5b8f2f0e-0000-4000-8000-000000000001"
OWNERS = build_table(
    {"service:core": "payments", "service:web*": "web", "service:web-search": "search"},
    {"payments": "finance", "finance": "company", "web": "company", "search": "company"},
)
FOREIGN: dict[str, Any] = {"teams": frozenset({"web"})}
ALLOWED: list[dict[str, Any]] = [
    {"team": "payments", "teams": frozenset({"payments"})},
    {"teams": frozenset({"search", "finance"})},
    {"teams": frozenset({"company"})},
    {"services": frozenset({"core"})},
]


def owned(**rights: Any) -> Plane:
    """A plane on which the team payments owns the service core, with two tokens of these rights."""
    made = plane("segment:finance")
    scopes = ("switches:read", "report:write")
    tokens = {
        b"reader0001": replace(credential(READER, *scopes), **rights),
        b"reporter01": replace(credential(REPORTER, *scopes), **rights),
    }
    made.state.install_tokens(2, tokens, owners=OWNERS)
    return made


def report(service: str, *dependencies: str) -> bytes:
    breakers = [{"dependency": each, "state": "closed"} for each in dependencies]
    report = {"service": service, "instance": "a1", "boot": BOOT, "seq": 1, "breakers": breakers}
    return json.dumps(report).encode()


def poll(served: Plane, path: str = "/api/v1/snapshot", name: str = "core/a1") -> int:
    headers = {"X-API-Key": READER, "Switchgear-Instance": name}
    body = b'{"segments": ["finance"]}' if path.endswith("check") else None
    return ask(served, "POST" if body else "GET", path, headers, content=body).status_code


def count_heard(served: Plane) -> int:
    return served.state.ledger.presence_buffer.count_heard(60)


@pytest.mark.parametrize(
    "body",
    [report("core"), report("web", "web->oracle", "core->oracle")],
    ids=["service", "caller of a breaker"],
)
def test_report_in_the_name_of_anothers_service_is_refused(body: bytes) -> None:
    response = ask(
        owned(**FOREIGN), "POST", "/api/v1/report", {"X-API-Key": REPORTER}, content=body
    )

    assert response.status_code == 403
    assert response.json()["owner"] == "payments"
    assert "The team payments owns the service core." in response.json()["detail"]


@pytest.mark.parametrize("rights", ALLOWED)
def test_report_by_the_owning_team_or_one_above_or_a_named_service_goes_on(
    rights: dict[str, Any],
) -> None:
    served = owned(**rights)
    served.state.ledger._is_database_away = True  # No database: admitted reports time out.

    response = ask(
        served, "POST", "/api/v1/report", {"X-API-Key": REPORTER}, content=report("core")
    )

    assert response.status_code == 503


def test_report_of_a_service_that_no_team_owns_goes_on() -> None:
    served = owned(**FOREIGN)
    served.state.ledger._is_database_away = True

    body = report("search")

    response = ask(served, "POST", "/api/v1/report", {"X-API-Key": REPORTER}, content=body)
    assert response.status_code == 503


@pytest.mark.parametrize(
    ("rights", "status"),
    [
        ({"patterns": frozenset({"service:se*"})}, 503),
        ({"patterns": frozenset({"experiment:*"}), "services": frozenset({"search"})}, 503),
        ({"patterns": frozenset({"experiment:*"})}, 403),
        ({"only_owned": True, "teams": frozenset({"web"})}, 403),
    ],
)
def test_limited_token_reports_within_its_limits(rights: dict[str, Any], status: int) -> None:
    served = owned(**rights)
    served.state.ledger._is_database_away = True
    body = report("search")

    response = ask(served, "POST", "/api/v1/report", {"X-API-Key": REPORTER}, content=body)

    assert response.status_code == status


@pytest.mark.parametrize(
    "path", ["/api/v1/snapshot", "/api/v1/snapshot?wait=0", "/api/v1/config?service=core"]
)
def test_poll_in_the_name_of_anothers_service_is_answered_and_not_counted(path: str) -> None:
    foreign, own = owned(**FOREIGN), owned(**ALLOWED[0])

    assert poll(foreign, path) == poll(own, path) != 403

    assert (count_heard(foreign), count_heard(own)) == (
        0,
        1 if "snapshot" in path else count_heard(own),
    )


def test_version_that_a_foreign_poll_claims_to_apply_is_no_acknowledgement() -> None:
    served, own = owned(**FOREIGN), owned(**ALLOWED[0])
    headers = {
        "X-API-Key": READER,
        "Switchgear-Instance": "core/a1",
        "Switchgear-Applied": f"{served.state.copy.publication.epoch}.17",
    }

    for each in (served, own):
        assert ask(each, "GET", "/api/v1/snapshot", headers).status_code == 200

    taken = [each.state.ledger.presence_buffer.take_due(1e9, 10, 0) for each in (served, own)]
    assert taken[0] == ([], [])
    assert [ack.instance for ack in taken[1][1]] == ["core/a1"]


def test_check_in_the_name_of_anothers_service_is_counted_for_the_token() -> None:
    served = owned(**FOREIGN)

    assert poll(served, "/api/v1/check") == 200

    assert [*served.state.ledger.check_counter.take_counts()] == ["token:reader0001"]


def test_takeover_ends_the_presence_of_a_foreign_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    from controlplane.dataplane.serving.call import Call
    from controlplane.dataplane.serving.held_requests import HeldCaller

    served = owned(**FOREIGN)
    served.state.install_tokens(3, served.state.tokens or {}, owners=NO_OWNERS)
    headers = [(b"x-api-key", READER.encode()), (b"switchgear-instance", b"core/a1")]
    scope = {"method": "GET", "path": "/api/v1/snapshot", "headers": headers}
    caller = HeldCaller(served.state, Call(scope, None, None))  # type: ignore[arg-type]
    caller.record_connected()
    assert count_heard(served) == 1
    served.state.ledger.presence_buffer.take_due(1e9, 10, 0)

    served.state.install_tokens(4, served.state.tokens or {}, owners=OWNERS)
    caller.check()
    caller.record_connected()

    assert served.state.ledger.presence_buffer.take_due(2e9, 10, 0) == ([], [])


def test_most_specific_pattern_decides() -> None:
    callers, web = TokenCallers(), replace(credential(READER), teams=frozenset({"web"}))
    callers.install(OWNERS)

    names = (b"web-shop/a1", b"web-search/a1", b"core/a1", b"search/a1", b"not a name")
    found = [callers.find_owner_of_instance(web, name) for name in names]

    assert found == ["", "search", "payments", "", ""]


def test_uses_and_refusals_are_noted_again_after_each_write() -> None:
    callers, token = (
        TokenCallers(),
        replace(credential(READER), token_id=7, teams=frozenset({"web"})),
    )
    callers.install(OWNERS)

    def use() -> dict[TokenUse, set[bool]]:
        for name in (b"web/a1", b"web/a2", b"core/a1", b"core/a1"):
            callers.find_owner_of_instance(token, name)
        return callers.take_uses()

    expected = {TokenUse(7, "web"): {False}, TokenUse(7, "core"): {True}}
    assert use() == use() == expected
    assert callers.refused_count == 4


def test_verdicts_follow_the_owners_and_the_tokens() -> None:
    callers, token = TokenCallers(), replace(credential(READER), teams=frozenset({"web"}))
    assert callers.find_owner_of_instance(token, b"core/a1") == ""

    callers.install(OWNERS)
    assert callers.find_owner_of_instance(token, b"core/a1") == "payments"

    callers.install(OWNERS)
    joined = replace(token, teams=frozenset({"payments"}))
    assert callers.find_owner_of_instance(joined, b"core/a1") == ""


def test_noted_uses_are_limited() -> None:
    callers, token = TokenCallers(), credential(READER)

    for number in range(3000):
        callers.find_owner_of_instance(token, b"s%d/a1" % number)

    assert len(callers.take_uses()) == 2000


def test_loop_of_parents_ends() -> None:
    table = build_table({"service:core": "a"}, {"a": "b", "b": "a"})

    assert table.chains == {"service:core": ("a", "b")}


def test_owners_are_in_the_copy_on_disk(tmp_path: Path) -> None:
    saved = replace(SAVED, owners=OWNERS)

    disk(tmp_path).save(saved)

    loaded = disk(tmp_path).load()
    assert loaded == saved
    assert loaded.owners.owner_of("service:web-search") == "search"


def test_copy_without_owners_is_as_earlier_releases_wrote_it(tmp_path: Path) -> None:
    disk(tmp_path).save(SAVED)

    assert b'"owners"' not in (tmp_path / "current").read_bytes()
    assert disk(tmp_path).load().owners == OwnershipTable()


@pytest.mark.parametrize(
    ("limits", "switch", "is_allowed"),
    [
        ({}, "segment:finance", True),
        ({"patterns": frozenset({"segment:pay*"})}, "segment:payout", True),
        ({"patterns": frozenset({"segment:pay*"})}, "segment:finance", False),
        ({"only_owned": True, "teams": frozenset({"payments"})}, "segment:payout", True),
        ({"only_owned": True, "teams": frozenset({"payments"})}, "segment:finance", False),
        ({"only_owned": True, "teams": frozenset({"web"})}, "segment:payout", False),
    ],
)
def test_emergency_order_of_a_limited_token(
    limits: dict[str, Any], switch: str, is_allowed: bool
) -> None:
    made = plane()
    token: Credential = replace(credential(READER, "switches:emergency"), **limits)
    owners = build_table({"segment:pay*": "payments"}, {})
    made.state.install_tokens(2, {b"reader0001": token}, owners=owners)
    order = {"action": "engage", "switch": switch, "reason": "card payments charged twice"}

    response = ask(
        made,
        "POST",
        "/api/v1/emergency/orders",
        {"X-API-Key": READER},
        content=json.dumps(order).encode(),
    )

    # Without a folder an order can't be stored.
    assert response.status_code == (503 if is_allowed else 403), response.text
    if not is_allowed:
        assert "This token is limited to" in response.json()["detail"]
