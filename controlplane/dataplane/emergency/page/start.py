"""The emergency page with its forms, and the confirmation before all traffic is stopped."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from controlplane.core import durations
from controlplane.core.protocol import EMERGENCY_PAGE
from switches.emergency.orders import ENGAGE, WITHDRAW
from switches.scopes import GLOBAL_ID

from .facts import PageFacts
from .fields import render_engage_form
from .form import EMPTY_FORM, SHOW, PageForm
from .frame import (
    count,
    mark_invalid,
    render_form,
    render_page,
    render_problems,
    render_switch,
)
from .grants import Grant
from .markup import EMPTY, Markup, fill, join
from .switch_list import render_switch_list

_UNCHANGED = {
    ENGAGE: "Nothing was engaged",
    WITHDRAW: "Nothing was withdrawn",
    SHOW: "Details are not shown",
}
_PROBLEMS = """<div class="note stop" role="alert" tabindex="-1" autofocus>
<h2>{heading}</h2>
<ul>{items}</ul>
</div>"""
_GRANTED = """<div class="note plain">
<p>You act as <b><bdi>{name}</bdi></b> until {ends} without typing the code again. Not your own
device? Close this tab when you are done.</p>
</div>"""
_CONFIRM = """<div class="field">
<label for="confirm">Type {words} to confirm</label>
<input class="input mono" id="confirm" name="confirm" required maxlength="100" autocomplete="off"
 autocapitalize="none" autocorrect="off" spellcheck="false" enterkeyhint="go"{invalid}>
{problems}
</div>
<button class="button engage">Stop all traffic</button>
<p><a class="button" href="{path}">Cancel</a></p>"""
_QUESTION = """<div class="stack">
<h1>{title}</h1>
<p>Nothing is engaged yet. {switch} stops the traffic of every service, until a second person
approves its release.</p>
</div>"""
_FORM = """<section class="stack" aria-labelledby="stop">
<h2 id="stop">What to stop</h2>
{form}
</section>"""
_ANOTHER_FORM = """<details><summary>Stop something else</summary>
{form}
</details>"""
_COLUMNS = """<div class="columns stack-l">
{form}
{switches}
</div>"""


def render_start(
    facts: PageFacts,
    form: PageForm = EMPTY_FORM,
    grant: Grant | None = None,
    *,
    problems: Mapping[str, Sequence[str]] | None = None,
    candidates: Sequence[str] = (),
    is_unconfirmed: bool = False,
    outcome: Markup = EMPTY,
) -> str:
    """Return the page: `outcome`, or what is wrong with `form`; the form; and what is engaged.

    With `is_unconfirmed`, it is unknown whether the order will come into force.
    """
    found = problems or {}
    heading = "Not confirmed" if is_unconfirmed else _UNCHANGED[form.action]
    is_engage = form.action == ENGAGE
    head = [
        outcome or Markup("<h1>Stop something now</h1>"),
        _render_problems(heading, found),
        EMPTY if outcome else _render_condition(facts),
        _render_granted(facts, grant),
    ]
    entered = form if is_engage else PageForm(name=form.name)
    engage = render_engage_form(facts, entered, grant, found if is_engage else {}, candidates)
    columns = fill(
        _COLUMNS,
        form=fill(_ANOTHER_FORM if outcome else _FORM, form=engage),
        switches=render_switch_list(facts, form, grant, {} if is_engage else found),
    )
    title = heading if found else "Emergency stop"
    content = [fill('<div class="stack">{head}</div>', head=join(head)), columns]
    return render_page(title, facts.installation, content)


def render_confirmation(
    facts: PageFacts, form: PageForm, grant: Grant, problems: Sequence[str] = ()
) -> str:
    """Return the page that asks to confirm that all traffic is to stop."""
    environment = facts.installation.environment
    words = [fill("<b>{word}</b>", word=word) for word in list_confirmations(environment)]
    fields = fill(
        _CONFIRM,
        words=join(words, " or "),
        invalid=mark_invalid(problems, "confirm"),
        problems=render_problems(problems, "confirm"),
        path=EMERGENCY_PAGE,
    )
    hidden = {
        "action": ENGAGE,
        "nonce": form.nonce,
        "switch": GLOBAL_ID,
        "ready_reason": form.ready_reason,
        "reason": form.reason,
        "expires_in": form.expires_in,
        "grant": grant.text,
    }
    title = f"Stop all traffic in {environment}?" if environment else "Stop all traffic?"
    question = fill(_QUESTION, title=title, switch=render_switch(GLOBAL_ID))
    content = [question, render_form(hidden, fields), _render_granted(facts, grant)]
    return render_page(title, facts.installation, content)


def list_confirmations(environment: str) -> list[str]:
    """Return the words, in lower case, of which one confirms that all traffic is to stop."""
    return [*filter(None, dict.fromkeys((environment.lower(), "global")))]


def _render_problems(heading: str, problems: Mapping[str, Sequence[str]]) -> Markup:
    if not problems:
        return EMPTY
    texts = [text for found in problems.values() for text in found]
    items = [fill("<li>{text}</li>", text=text) for text in texts]
    return fill(_PROBLEMS, heading=heading, items=join(items))


def _render_condition(facts: PageFacts) -> Markup:
    """Return what is known of the database, how old the data is, and how much is engaged."""
    if facts.age_seconds is None:
        return fill(
            '<div class="note stop"><p><b>This {kind} can\'t check codes yet:</b> {source}'
            " has not responded since it started. Use another data plane.</p></div>",
            kind="relay" if facts.is_relay else "data plane",
            source="its upstream" if facts.is_relay else "PostgreSQL",
        )
    seconds = timedelta(seconds=round(facts.age_seconds))
    age = fill("What you see was confirmed {age} ago.", age=durations.format_readable(seconds))
    url, kind = facts.installation.console_url, ""
    if facts.has_lost_upstream:
        said = fill(
            "<b>This is the relay <bdi>{plane}</bdi>, and it has heard nothing new from its"
            " upstream since {since}.</b> An order given here blocks at once in this region, and"
            " elsewhere once the upstream has it. {age}",
            plane=facts.plane,
            since=facts.describe_time(facts.now - seconds, seconds=True),
            age=age,
        )
    elif not facts.database_reachable:
        said = Markup(
            f"<b>PostgreSQL does not respond.</b> Orders given here work without it. {age}"
        )
    elif facts.database_read_only:
        said = Markup("<b>PostgreSQL accepts no changes.</b> Orders given here work without it.")
    else:
        console = fill('<a href="{url}">the console</a>', url=url) if url else "the console"
        said = fill("<b>PostgreSQL responds.</b> You can also use {console}.", console=console)
        kind = " flow"
    if facts.is_relay and not facts.has_lost_upstream:
        text = "This is the relay <bdi>{plane}</bdi>. Its upstream reports: {said}"
        said = fill(text, plane=facts.plane, said=said)
    engaged = sum(entry.state == "engaged" for entry in facts.entries)
    ramping = len(facts.entries) - engaged
    numbers = count(engaged, "switch is engaged", "switches are engaged")
    if not engaged:
        numbers = "Nothing is engaged"
    return fill(
        '<div class="note{kind}"><p>{said}</p></div>\n<p><a href="#engaged">{numbers}</a></p>',
        kind=kind,
        said=said,
        numbers=f"{numbers}, {ramping:,} ramping" if ramping else numbers,
    )


def _render_granted(facts: PageFacts, grant: Grant | None) -> Markup:
    if grant is None:
        return EMPTY
    return fill(_GRANTED, name=grant.by.name, ends=facts.describe_time(grant.ends))
