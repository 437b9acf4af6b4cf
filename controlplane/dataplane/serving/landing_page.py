"""The front page of a data plane or relay: its status, and how to stop traffic."""

from datetime import timedelta
from html import escape

from controlplane.core import durations
from controlplane.core.degradation_levels import build_document
from controlplane.dataplane.state import State

from .responses import Response, answer_page, degradation_status

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Switchgear {kind}</title>
</head>
<body>
<h1>Switchgear {kind}</h1>
<p>This process serves switch states from memory. It has no console.</p>
<p><a href="/emergency/"><strong>Stop something now</strong></a> with your user name and emergency
code: it needs neither PostgreSQL nor Redis nor the console.</p>
<p><strong>{status}</strong></p>
<h2>Level {level}: {name}</h2>
{causes}
<h2>What works here</h2>
<p>With an API token: <code>GET /api/v1/snapshot</code>, <code>/api/v1/snapshot/stream</code>,
<code>POST /api/v1/check</code>, <code>/ofrep/v1/evaluate/flags</code>,
<code>GET /api/v1/config</code>, <code>/api/v1/degradation</code>.
Without: <code>GET /health/ready/data</code>.
Engaged switches keep blocking, and released ones allow traffic, even while PostgreSQL and Redis
are down.</p>
<h2>To stop something without an emergency code</h2>
<p>With an API token that has the scope <code>switches:emergency</code>:
<code>switchgear kill segment:KEY --for 24h --reason "…"</code>, or
<code>POST /api/v1/emergency/orders</code>.</p>
<p>Or use the console. If it does not respond but PostgreSQL does, on its server:
<code>.venv/bin/python manage.py killswitch engage --segment KEY --for 24h --reason "…"</code></p>
<p>Otherwise stop traffic at its entry: scale the service to zero, close its route, or set its own
switch. To stop a service that uses the client library, set
<code>SWITCHGEAR_FORCE_ENGAGED=segment:KEY</code> in its environment and restart it.</p>
</body>
</html>
"""


def render_page(state: State) -> Response:
    """Return the front page as HTML; it contains no secrets, because it needs no sign-in."""
    age = durations.format_readable(timedelta(seconds=round(state.age_seconds())))
    confirmed = f"The served data was confirmed {age} ago."
    if state.copy is None:
        status = "Nothing to serve yet: this process has read nothing since its start."
    elif state.upstream is not None:
        status = f"This relay gets nothing new from its upstream. {confirmed}"
    elif state.is_relay:
        status = f"Up to date with its upstream. {confirmed}"
    elif state.database_reachable:
        status = "Up to date with the database."
    else:
        status = f"The database does not respond. {confirmed}"
    present = degradation_status(state)
    page = (
        _PAGE.replace("{kind}", "relay" if state.is_relay else "data plane")
        .replace("{status}", status)
        .replace("{level}", str(present["level"]))
        .replace("{name}", present["name"])
        .replace("{causes}", _render_causes(state))
    )
    return answer_page(200, page)


def _render_causes(state: State) -> str:
    """Return HTML of this process's own degradation causes, and the number of others."""
    own = build_document(*state.assumed_reachable(), state.own_causes())
    others = len(state.causes)
    parts = []
    for number, (text, effect) in enumerate(zip(own["causes"], own["effects"], strict=True)):
        parts.append(f"<p><strong>{escape(text)}</strong></p>")
        parts.append(f"<p>Does not work: {escape('; '.join(effect['fails']))}.</p>")
        if number == 0:  # What works despite the worst cause; another cause may claim more.
            parts.append(f"<p>Works: {escape('; '.join(effect['works']))}.</p>")
    if others:
        count = "1 cause" if others == 1 else f"{others} causes"
        where = "<code>GET /api/v1/degradation</code>"
        parts.append(f"<p>{count} in addition to our own stores; see {where}.</p>")
    return "\n".join(parts or ["<p>No outage detected.</p>"])
