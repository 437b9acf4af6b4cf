"""What a Slack message says, and what it never lets anybody smuggle in."""

from datetime import UTC, datetime

import pytest

from controlplane.core.outbox import wordings
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.transports import slack

ENGAGED = {
    "switch": "segment:finance",
    "by": "user:alice",
    "reason": "provider outage, 5xx since 02:10",
    "expires_at": "2026-11-22T02:11:00.000000Z",
    "on_expiry": "hold",
    "path": "/switches/segment/finance/",
}


def render(event, facts):
    at = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
    return slack.render(OutboxMessage(event=event, payload=facts, created_at=at))


def everything(rendered):
    texts = [rendered["text"]]
    for block in rendered["blocks"]:
        texts += [part["text"] for part in [block.get("text"), *block.get("elements", [])] if part]
    return "\n".join(texts)


def test_engaged_says_what_who_why_until_when_and_where(settings):
    settings.ENVIRONMENT_NAME = "staging"
    settings.PUBLIC_URL = "https://console.example"

    said = render("switch.engaged", ENGAGED)

    for text in (everything(said), said["text"]):
        assert "[staging] segment:finance ENGAGED" in text
        assert "user:alice" in text
        assert "provider outage, 5xx since 02:10" in text
        assert "2026-11-22 02:11:00 UTC, then it holds and is OVERDUE" in text
    assert "<https://console.example/switches/segment/finance/|" in everything(said)


def test_production_is_louder_than_any_other_environment(settings):
    settings.ENVIRONMENT_NAME = "production"

    assert "[PRODUCTION]" in render("switch.engaged", ENGAGED)["blocks"][0]["text"]["text"]


def test_without_a_public_url_there_is_no_link(settings):
    settings.PUBLIC_URL = ""

    assert "<" not in everything(render("switch.engaged", ENGAGED))


def test_permanent_says_never():
    said = render("switch.extended", {**ENGAGED, "expires_at": None, "said": "root cause unknown"})

    assert "never (permanent)" in said["text"]


@pytest.mark.parametrize(
    "reason",
    [
        "<!channel> wake up everybody now",
        "look at <https://evil.example|the runbook>",
        "a & b < c > d",
        "@here and @channel and @everyone",
        "<@U123> said so",
        "@HERE",
    ],
)
def test_a_reason_can_not_mention_link_or_mark_up(reason):
    said = render("switch.engaged", {**ENGAGED, "reason": reason})
    text = everything(said).replace("&lt;", "").replace("&gt;", "").replace("&amp;", "")

    assert not set("<>&") & set(text)
    for word in ("@here", "@channel", "@everyone"):
        assert word not in text.lower()
    marked = [block["text"] for block in said["blocks"] if block["type"] == "section"]
    assert marked
    assert all(part["verbatim"] for part in marked)


def test_an_event_without_wording_is_told_plainly_with_its_facts():
    said = render("ramp.compensated", {"switch": "feature:chat", "step": 2, "evidence": {"a": 1}})

    assert "ramp.compensated" in said["text"]
    assert "feature:chat" in said["text"]
    assert "*step:* 2" in said["text"]


def test_odd_facts_break_nothing():
    for event in wordings.WORDINGS:
        assert render(event, {})["text"]
        odd = {"switch": "{by}", "reason": "x" * 100_000, "expires_at": "soon", "by": ["a"]}
        said = render(event, odd)
        assert len(said["text"]) < 12_000
        for block in said["blocks"]:
            assert len(block.get("text", {}).get("text", "")) <= 3000
        assert len(said["blocks"][0]["text"]["text"]) <= 150
    assert render("{odd} event", {"a": 1})["text"]
