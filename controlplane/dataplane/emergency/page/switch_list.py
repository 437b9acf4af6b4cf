"""The list of engaged switches; with a grant, also reasons, people, planes and withdrawal."""

from collections.abc import Iterable, Mapping, Sequence

from controlplane.core.reasons import MAX_CHARACTERS
from switches.emergency.orders import WITHDRAW, Order
from switches.scopes import HOLD
from switches.snapshot import SnapshotEntry

from .facts import PageFacts
from .fields import render_who
from .form import SHOW, PageForm, make_nonce
from .frame import count, join_names, mark_invalid, render_form, render_problems, render_switch
from .grants import Grant
from .markup import EMPTY, Markup, fill, join

MAX_LISTED = 200
ENGAGED_ICON = Markup(
    '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M5.3 1.2h5.4l4.1 4.1v5.4l-4.1 4.1H5.3'
    'l-4.1-4.1V5.3z" fill="currentColor"/>'
    '<path class="hole" d="M4.8 8h6.4" stroke-width="2"/></svg>'
)
RAMPING_ICON = Markup(
    '<svg viewBox="0 0 16 16" aria-hidden="true"><rect x="1.5" y="1.5" width="13" height="13"'
    ' rx="3" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="m5.3 10.7 5-5"'
    ' stroke="currentColor" stroke-width="1.8"/></svg>'
)
_SECTION = """<section class="stack" aria-labelledby="engaged">
<h2 id="engaged">Engaged now</h2>
{switches}
{more}
{withdrawn}
{show}
</section>"""
_NOT_HERE = Markup(
    '<p class="quiet">It was not given to this relay: withdraw it on a data plane.</p>'
)
_ORDER = """<div class="order" id="order-{id}">
<p><bdi dir="auto">{reason}</bdi></p>
<p class="quiet">Ordered by <bdi>{by}</bdi> on {plane} at {at}.</p>
<p class="quiet">{planes}</p>
<p class="quiet">{applied}</p>
{withdraw}
</div>"""
_WITHDRAW_REASON = """<div class="field">
<label for="{field}">Why it may flow again</label>
{problems}
<textarea class="input" id="{field}" name="reason" rows="2" maxlength="{most}" required
 dir="auto"{invalid}>
{text}</textarea>
</div>"""
_WITHDRAWN = """<li><h4>{switch}</h4>
<p>Withdrawn at {at} by <bdi>{by}</bdi>: <bdi dir="auto">{reason}</bdi></p></li>"""
_DETAILS = """<details{opened}><summary>{summary}</summary>
{form}
</details>"""

Problems = Mapping[str, Sequence[str]]


def render_switch_list(
    facts: PageFacts, form: PageForm, grant: Grant | None, problems: Problems
) -> Markup:
    """Return what is engaged. `problems` are those of a form to withdraw or to show details."""
    items = [
        fill(
            "<li><h3>{switch}</h3>\n{state}\n{details}</li>",
            switch=render_switch(entry.id),
            state=_render_state(facts, entry),
            details=_render_details(facts, entry, form, grant, problems) if grant else EMPTY,
        )
        for entry in facts.entries[:MAX_LISTED]
    ]
    more = len(facts.entries) - MAX_LISTED
    return fill(
        _SECTION,
        switches=fill('<ul class="switches">{items}</ul>', items=join(items))
        if items
        else Markup("<p>Nothing is engaged.</p>"),
        more=fill("<p>And {more} more.</p>", more=f"{more:,}") if more > 0 else EMPTY,
        withdrawn=_render_withdrawn(facts) if grant else EMPTY,
        show=_render_show(facts, form, grant, problems),
    )


def describe_planes(holders: Iterable[str], planes: int) -> str:
    """Return which of all known data planes hold an order, as a sentence."""
    names = sorted(holders)
    if not names:
        return "Stored on no data plane's disk yet."
    if len(names) < planes:
        return (
            f"Stored on {join_names(names)}, of {planes} data planes. The others get it as soon as"
            " they can be reached."
        )
    if len(names) == 1:
        return f"Stored on {names[0]}, the only data plane that it knows."
    return f"Stored on all {len(names)} data planes: {join_names(names)}."


def describe_effect(facts: PageFacts, order: Order) -> str:
    applied, seen = facts.count_applied(order.id)
    if not seen:
        return "No instance has polled this data plane lately: its effect is not known here."
    instances = count(seen, "instance", "instances")
    return f"Applied by {applied:,} of {instances} seen by this data plane."


def render_withdraw(
    order: Order, form: PageForm, grant: Grant | None, problems: Problems
) -> Markup:
    """Return the form that withdraws `order`, with what was entered in `form` except the code."""
    is_meant = form.action == WITHDRAW and form.order == str(order.id)
    found = problems if is_meant else {}
    field = f"why-{order.id}"
    reason = fill(
        _WITHDRAW_REASON,
        field=field,
        problems=render_problems(found.get("reason", ()), field),
        most=MAX_CHARACTERS,
        invalid=mark_invalid(found.get("reason", ()), field),
        text=form.reason if is_meant else "",
    )
    button = fill(
        '<button class="button">Withdraw the order for {switch}</button>', switch=order.switch
    )
    who = EMPTY if grant else render_who(form.name, "withdraw", found.get("code", ()))
    hidden = {
        "action": WITHDRAW,
        "order": str(order.id),
        "nonce": form.keep_nonce() if is_meant else make_nonce(),
    }
    if grant is not None:
        hidden["grant"] = grant.text
    return fill(
        _DETAILS,
        opened=" open" if found else "",
        summary="Withdraw this order",
        form=render_form(hidden, join([reason, who, button])),
    )


def _render_state(facts: PageFacts, entry: SnapshotEntry) -> Markup:
    since = fill(
        "since {at} ({age})",
        at=facts.describe_time(entry.engaged_at),
        age=facts.describe_age(entry.engaged_at),
    )
    if entry.state == "ramping":
        state = fill(
            '<p><span class="state">{icon} Ramping</span>: {percent} % is allowed. Engaged'
            " {since}.</p>",
            icon=RAMPING_ICON,
            percent=f"{entry.allow_percent.normalize():f}",
            since=since,
        )
    else:
        state = fill(
            '<p><span class="state engaged">{icon} Engaged</span> {since}{order}.</p>',
            icon=ENGAGED_ICON,
            since=since,
            order=", by an emergency order" if entry.emergency else "",
        )
    return join([state, _render_expiry(facts, entry)])


def _render_expiry(facts: PageFacts, entry: SnapshotEntry) -> Markup:
    if entry.expires_at is None:
        return EMPTY
    is_over = entry.expires_at <= facts.now
    return fill(
        '<p class="quiet">{verb} {at}{then}.</p>',
        verb="Expired" if is_over else "Until",
        at=facts.describe_time(entry.expires_at),
        then="; it stays engaged" if is_over and entry.on_expiry == HOLD else "",
    )


def _render_details(
    facts: PageFacts, entry: SnapshotEntry, form: PageForm, grant: Grant, problems: Problems
) -> Markup:
    """Return the reason of an engagement, and the open orders of its switch."""
    reason = fill('<p><bdi dir="auto">{reason}</bdi></p>', reason=entry.reason)
    orders = [
        fill(
            _ORDER,
            id=order.id,
            reason=order.reason,
            by=order.by.name,
            plane=order.plane,
            at=facts.describe_time(order.at, seconds=True),
            planes=describe_planes(facts.holders(order.id), facts.planes),
            applied=describe_effect(facts, order),
            withdraw=render_withdraw(order, form, grant, problems)
            if facts.may_withdraw(order)
            else _NOT_HERE,
        )
        for order in facts.list_orders(entry.id)
    ]
    return join([EMPTY if entry.emergency else reason, *orders])


def _render_withdrawn(facts: PageFacts) -> Markup:
    """Return the withdrawals that the database does not know of yet."""
    withdrawals = [
        order for order in facts.orders.withdrawn.values() if order.id in facts.orders.unclosed
    ]
    if not withdrawals:
        return EMPTY
    items = [
        fill(
            _WITHDRAWN,
            switch=render_switch(order.switch),
            at=facts.describe_time(order.at, seconds=True),
            by=order.by.name,
            reason=order.reason,
        )
        for order in sorted(withdrawals, key=lambda order: order.at, reverse=True)[:MAX_LISTED]
    ]
    return fill('<h3>Withdrawn orders</h3>\n<ul class="switches">{items}</ul>', items=join(items))


def _render_show(
    facts: PageFacts, form: PageForm, grant: Grant | None, problems: Problems
) -> Markup:
    """Return the form that shows the details, or updates them.

    If a withdrawal was refused for its code, return its form instead.
    """
    if grant is not None:
        button = Markup('<button class="button">Update this page</button>')
        return render_form({"action": SHOW, "grant": grant.text}, button)
    if form.action == WITHDRAW:
        meant = [order for key, order in facts.orders.open.items() if str(key) == form.order]
        if meant:
            return render_withdraw(meant[0], form, None, problems)
    who = render_who(form.name, "show", problems.get("code", ()))
    button = Markup('<button class="button">Show details</button>')
    return fill(
        _DETAILS,
        opened=" open" if problems else "",
        summary="Reasons, people and planes; withdraw an order",
        form=render_form({"action": SHOW}, join([who, button])),
    )
