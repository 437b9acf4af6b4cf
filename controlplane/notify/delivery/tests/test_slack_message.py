"""Slack rendering, and injection attempts by user texts."""

from datetime import UTC, datetime

import pytest

from controlplane.core.message_templates import MESSAGE_TEMPLATES
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.transports.slack import transport as slack
from controlplane.notify.transports.slack.blocks import render_head, render_reply

AT = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
ENGAGED = {
    "switch": "segment:finance",
    "by": "user:alice",
    "reason": "provider outage, 5xx since 02:10",
    "expires_at": "2026-11-22T02:11:00.000000Z",
    "on_expiry": "hold",
    "path": "/switches/segment/finance/",
}


def render(event, facts):
    return slack.render_message(OutboxMessage(event=event, payload=facts, created_at=AT))


def everything(rendered):
    texts = [rendered["text"]]
    for block in rendered["blocks"]:
        texts += [part["text"] for part in [block.get("text"), *block.get("elements", [])] if part]
    return "\n".join(texts)


def test_engaged_says_what_who_why_until_when_and_where(settings):
    settings.ENVIRONMENT_NAME = "staging"
    settings.PUBLIC_URL = "https://console.example"

    post = render("switch.engaged", ENGAGED)

    for text in (everything(post), post["text"]):
        assert "[staging] segment:finance ENGAGED" in text
        assert "user:alice" in text
        assert "provider outage, 5xx since 02:10" in text
        assert "2026-11-22 02:11:00 UTC, then stays engaged, OVERDUE" in text
    assert "<https://console.example/switches/segment/finance/|" in everything(post)


def test_production_is_louder_than_any_other_environment(settings):
    settings.ENVIRONMENT_NAME = "production"

    assert "[PRODUCTION]" in render("switch.engaged", ENGAGED)["blocks"][0]["text"]["text"]


def test_without_a_public_url_there_is_no_link(settings):
    settings.PUBLIC_URL = ""

    assert "<" not in everything(render("switch.engaged", ENGAGED))


def test_permanent_says_never():
    post = render("switch.extended", {**ENGAGED, "expires_at": None, "said": "root cause unknown"})

    assert "never (permanent)" in post["text"]


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
    post = render("switch.engaged", {**ENGAGED, "reason": reason})
    text = everything(post).replace("&lt;", "").replace("&gt;", "").replace("&amp;", "")

    assert not set("<>&") & set(text)
    for word in ("@here", "@channel", "@everyone"):
        assert word not in text.lower()
    marked = [block["text"] for block in post["blocks"] if block["type"] == "section"]
    assert marked
    assert all(part["verbatim"] for part in marked)


def test_an_event_without_wording_is_told_plainly_with_its_facts():
    post = render("slo.firing", {"switch": "feature:chat", "step": 2, "evidence": {"a": 1}})

    assert "slo.firing" in post["text"]
    assert "feature:chat" in post["text"]
    assert "*step:* 2" in post["text"]


def test_odd_facts_break_nothing():
    for event in MESSAGE_TEMPLATES:
        assert render(event, {})["text"]
        odd = {"switch": "{by}", "reason": "x" * 100_000, "expires_at": "soon", "by": ["a"]}
        post = render(event, odd)
        assert len(post["text"]) < 12_000
        for block in post["blocks"]:
            assert len(block.get("text", {}).get("text", "")) <= 3000
        assert len(post["blocks"][0]["text"]["text"]) <= 150
    assert render("{odd} event", {"a": 1})["text"]


def test_no_block_is_longer_than_slack_takes_it(settings):
    settings.PUBLIC_URL = "https://console.example"
    long = {
        "switch": "👾" * 3000,
        "reason": "<&>@here" * 3000,
        "path": f"/switches/engage/?reason={'%EA%B2%B0' * 400}",
        "source": "<" * 3000,
        **{f"{'key ' * 1000}{number}": "&" * 3000 for number in range(60)},
    }
    for event in [*MESSAGE_TEMPLATES, "an.event_of_tomorrow"]:
        message = OutboxMessage(pk=7, event=event, payload=long, created_at=AT)
        for post in (render_head(message, message), render_reply(message)):
            assert len(post["blocks"]) <= 50
            assert units(post["blocks"][0]["text"]["text"]) <= 3000
            texts = [part for block in post["blocks"] for part in block.get("elements", [])]
            for part in [*texts, *(block["text"] for block in post["blocks"] if "text" in block)]:
                assert units(part["text"]) <= (150 if part["type"] == "plain_text" else 3000)


def test_a_link_that_is_too_long_leads_to_the_page_without_what_was_filled_in(settings):
    settings.PUBLIC_URL = "https://console.example"
    filled_in = f"/switches/engage/?reason={'%EA%B2%B0' * 400}"

    post = render("trip.waits", {"path": filled_in})
    usual = render("trip.waits", {"path": "/switches/engage/?reason=outage"})

    assert "<https://console.example/switches/engage/|" in everything(post)
    assert "<https://console.example/switches/engage/?reason=outage|" in everything(usual)


def test_what_is_cut_off_is_no_half_of_an_escaped_letter():
    post = render_reply(OutboxMessage(pk=7, event="x", payload={"a": "&" * 450}, created_at=AT))
    many = {f"{number}": "<" * 450 for number in range(9)}
    cut = render_reply(OutboxMessage(pk=7, event="x", payload=many, created_at=AT))["text"]

    assert "…" not in post["text"]
    assert cut.endswith("&lt;…")


def test_a_fact_is_taken_for_a_time_by_its_name_only():
    facts = {"format": "20261121", "chat": "2026-11-21", "since_at": "2026-11-21T02:11:00Z"}

    lines = dict(renderer.render("an.event_of_tomorrow", facts).lines)

    assert lines["format"] == "20261121"
    assert lines["chat"] == "2026-11-21"
    assert lines["since at"] == "2026-11-21 02:11:00 UTC"


def units(text):
    return len(text.encode("utf-16-le")) // 2
