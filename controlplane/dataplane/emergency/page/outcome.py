"""The result of an order that was given on the emergency page, in plain words."""

from difflib import get_close_matches

from controlplane.dataplane.emergency.service import Acceptance
from switches.emergency.orders import ENGAGE, Order
from switches.scopes import GLOBAL_ID
from switches.snapshot import POLL_SECONDS

from .facts import PageFacts
from .frame import join_names, render_switch
from .markup import EMPTY, Markup, fill, join
from .switch_list import describe_effect, describe_planes

MAX_SIMILAR = 3
_RESULT = """<h1 tabindex="-1" autofocus>{heading}</h1>
<div class="note {kind}"><p><b>{summary}</b></p></div>
<dl>
{rows}
</dl>
{after}"""
_ROW = "<dt>{term}</dt><dd>{text}</dd>"
_REVIEW = "No safety rule was asked, so another person reviews it."
_MISTAKE = '<p><a href="#order-{order}">The wrong one? Withdraw the order.</a></p>'
_UNKNOWN = """<div class="note"><p><b>No switch {switch} is registered.</b> Do the services check it
by this name?{similar}</p></div>"""


def render_outcome(facts: PageFacts, acceptance: Acceptance) -> Markup:
    """Return what happened, who holds the order, what services do, and what happens next."""
    order = acceptance.order
    if order.action != ENGAGE:
        return _render_withdrawn(facts, acceptance)
    if order.id not in facts.orders.open:
        return _render_ended(facts, order)
    entry = facts.find_entry(order.switch)
    is_first = entry is None or entry.emergency == str(order.id)
    until = facts.describe_time(order.expiry.expires_at)
    return fill(
        _RESULT,
        heading=fill("{switch} is engaged", switch=render_switch(order.switch)),
        kind="stop",
        summary=fill("Blocked until {until}, and then until a person releases it.", until=until)
        if is_first
        else "It was engaged already: nothing changes for its callers.",
        rows=join(
            [
                _render_given("Ordered", facts, order),
                _render_planes(acceptance),
                _render_spread(facts, order) if is_first else EMPTY,
                fill(_ROW, term="Next", text=_describe_future(facts)),
            ]
        ),
        after=join([_warn_of_unknown(facts, order), fill(_MISTAKE, order=order.id)]),
    )


def _render_ended(facts: PageFacts, order: Order) -> Markup:
    """Return the result of a form that was sent again after its order had ended."""
    entry = facts.find_entry(order.switch)
    state = "released" if entry is None else entry.state
    return fill(
        _RESULT,
        heading=fill("This order for {switch} has ended", switch=render_switch(order.switch)),
        kind="flow" if entry is None else "stop",
        summary=f"The switch is {state} now.",
        rows=join(
            [
                _render_given("Ordered", facts, order),
                fill(
                    _ROW,
                    term="Since then",
                    text="It was withdrawn."
                    if order.id in facts.orders.withdrawn
                    else "The console has taken it over, and shows what became of it.",
                ),
            ]
        ),
        after=EMPTY,
    )


def _render_withdrawn(facts: PageFacts, acceptance: Acceptance) -> Markup:
    order = acceptance.order
    entry = facts.find_entry(order.switch)
    others = {other.by.name for other in facts.list_orders(order.switch)}
    if entry is None:
        summary = "It is released: its traffic flows again."
    elif others:
        summary = f"It stays engaged by another emergency order, of {join_names(others)}."
    elif entry.state == "engaged":
        summary = "It stays engaged by the console: release it there."
    else:
        summary = "It is ramping, as the console published it last."
    return fill(
        _RESULT,
        heading=fill("The order for {switch} is withdrawn", switch=render_switch(order.switch)),
        kind="flow" if entry is None or entry.state != "engaged" else "stop",
        summary=summary,
        rows=join([_render_given("Withdrawn", facts, order), _render_planes(acceptance)]),
        after=EMPTY,
    )


def _render_given(term: str, facts: PageFacts, order: Order) -> Markup:
    at = facts.describe_time(order.at, seconds=True)
    by = fill("{at} by <bdi>{name}</bdi> on {plane}", at=at, name=order.by.name, plane=order.plane)
    return fill(_ROW, term=term, text=by)


def _render_planes(acceptance: Acceptance) -> Markup:
    text = describe_planes(acceptance.accepted_by, acceptance.planes)
    return fill(_ROW, term="Data planes", text=text)


def _render_spread(facts: PageFacts, order: Order) -> Markup:
    text = (
        "Those that wait for changes at this data plane get it at once, the others when they poll"
        f" next, usually within {POLL_SECONDS} seconds. {describe_effect(facts, order)}"
    )
    return fill(_ROW, term="Services", text=text)


def _describe_future(facts: PageFacts) -> str:
    if facts.is_database_writable:
        return (
            "Within seconds it becomes an ordinary engagement: release it in the console, not"
            f" here. {_REVIEW}"
        )
    what = "accepts changes" if facts.database_reachable else "responds"
    return (
        f"When PostgreSQL {what} again, it becomes an ordinary engagement in the console. Until"
        f" then you can withdraw it here. {_REVIEW}"
    )


def _warn_of_unknown(facts: PageFacts, order: Order) -> Markup:
    """Return a warning if no switch of this name is registered: it may be a typing error."""
    if order.switch in facts.known or order.switch == GLOBAL_ID:
        return EMPTY
    similar = get_close_matches(order.switch, facts.known, MAX_SIMILAR)
    return fill(
        _UNKNOWN,
        switch=order.switch,
        similar=f" Similar ones: {join_names(similar)}." if similar else "",
    )
