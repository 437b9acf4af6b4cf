"""Forms of the emergency page: parsing, the order's request, and the switch that is meant."""

from urllib.parse import urlencode
from uuid import UUID

import pytest

from controlplane.core.errors import DomainError, InvalidInput
from controlplane.dataplane.emergency.page.form import (
    FORM_TYPE,
    OTHER_REASON,
    AmbiguousSwitch,
    PageForm,
    make_nonce,
    parse_form,
    resolve_switch,
)

KNOWN = frozenset({"segment:finance", "feature:finance", "feature:chat"})
READY = "Errors or timeouts seen at 02:10 KST; cause not found yet"


def form(**values: str) -> PageForm:
    return PageForm(**{"nonce": "8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11", **values})


def test_form_keeps_every_script_and_line_breaks() -> None:
    sent = {"reason": "결제 오류\r\nخطأ", "name": "김", "switch": "segment:finance"}

    parsed = parse_form(FORM_TYPE + b"; charset=UTF-8", urlencode(sent).encode())

    assert (parsed.reason, parsed.name, parsed.switch) == tuple(sent.values())
    assert (parsed.action, parsed.expires_in) == ("engage", "24h")


@pytest.mark.parametrize(
    ("content_type", "body", "said"),
    [
        (b"", b"action=show", "takes application/x-www-form-urlencoded only"),
        (b"application/json", b"{}", "takes application/x-www-form-urlencoded only"),
        (b"multipart/form-data; boundary=x", b"--x", "takes application"),
        (FORM_TYPE, b"action=show&", "can't be read"),
        (FORM_TYPE, b"action", "can't be read"),
        (FORM_TYPE, b"reason=%ff", "can't be read"),
        (FORM_TYPE, b"reason=\xff", "can't be read"),
        (FORM_TYPE, b"&".join([b"a=b"] * 100), "can't be read"),
        (FORM_TYPE, b"name=kim&name=lee", "a field twice"),
        (FORM_TYPE, b"action=show&on_expiry=release", "unknown field: on_expiry"),
        (FORM_TYPE, b"action=release", "must be one of engage, withdraw, show"),
        (FORM_TYPE, b"name=" + b"k" * 201, "name has more than 200 characters"),
        (FORM_TYPE, b"reason=" + b"k" * 4001, "reason has more than 4,000 characters"),
    ],
)
def test_what_no_form_of_the_page_sends_is_refused(
    content_type: bytes, body: bytes, said: str
) -> None:
    with pytest.raises(DomainError, match=said) as refused:
        parse_form(content_type, body)

    assert refused.value.status == 400
    assert "Open the page again" in refused.value.detail


def test_same_form_gives_the_same_id_and_a_changed_one_another() -> None:
    """Or a person who goes back and chooses another switch would be refused."""
    first = form(switch="segment:finance", ready_reason=READY).build_request(KNOWN)
    again = form(switch="segment:finance", ready_reason=READY).build_request(KNOWN)
    other = form(switch="feature:chat", ready_reason=READY).build_request(KNOWN)
    longer = form(switch="segment:finance", ready_reason=READY, expires_in="7d")

    assert first == again
    assert len({first["id"], other["id"], longer.build_request(KNOWN)["id"]}) == 3
    assert str(UUID(first["id"])) == first["id"]


def test_every_page_has_a_number_of_its_own() -> None:
    assert len({make_nonce() for _ in range(100)}) == 100
    with pytest.raises(InvalidInput):
        form(nonce="7", switch="feature:chat", ready_reason=READY).build_request(KNOWN)


@pytest.mark.parametrize(
    ("ready", "typed", "reason"),
    [
        (READY, "", READY),
        (READY, " INC-4411 ", f"{READY}. INC-4411"),
        (OTHER_REASON, "Double charges", "Double charges"),
        (OTHER_REASON, "", ""),
        ("", "Double charges", "Double charges"),
    ],
)
def test_reason_is_the_chosen_one_with_the_typed_details(
    ready: str, typed: str, reason: str
) -> None:
    assert form(ready_reason=ready, reason=typed).full_reason == reason


@pytest.mark.parametrize(
    ("chosen", "typed", "switch"),
    [
        ("segment:finance", "", "segment:finance"),
        ("", "feature:chat", "feature:chat"),
        ("", " Feature : chat ", "feature:chat"),
        ("feature:chat", "feature:chat", "feature:chat"),
        ("", "experiment:new-one", "experiment:new-one"),
        ("", "global:all", "global:all"),
        ("", "not a key!", "not a key!"),  # The rules of every order refuse it.
    ],
)
def test_switch_is_the_chosen_or_the_typed_one(chosen: str, typed: str, switch: str) -> None:
    assert resolve_switch(chosen, typed, KNOWN) == switch


@pytest.mark.parametrize(
    ("chosen", "typed", "candidates"),
    [
        ("", "finance", ["segment:finance", "feature:finance"]),
        ("", "chat", ["feature:chat"]),
        ("", "unheard-of", ["segment:unheard-of", "feature:unheard-of", "experiment:unheard-of"]),
        ("feature:chat", "segment:finance", ["feature:chat", "segment:finance"]),
        ("feature:chat", "finance", ["feature:chat"]),
    ],
)
def test_unclear_switch_is_asked_for_and_never_guessed(
    chosen: str, typed: str, candidates: list[str]
) -> None:
    with pytest.raises(AmbiguousSwitch) as refused:
        resolve_switch(chosen, typed, KNOWN)

    assert refused.value.candidates == candidates


def test_no_switch_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Choose or type the switch"):
        resolve_switch("", "  ", KNOWN)
