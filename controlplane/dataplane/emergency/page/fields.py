"""The form that engages a switch: switch, reason, duration, name and code."""

from collections.abc import Mapping, Sequence

from controlplane.core.reasons import MAX_CHARACTERS, TEMPLATES
from switches.emergency.orders import ENGAGE
from switches.expiry import OFFERED_DURATIONS
from switches.scopes import GLOBAL_ID, keyed_scopes

from .facts import PageFacts
from .form import OTHER_REASON, PageForm
from .frame import mark_invalid, render_choice, render_form, render_problems
from .grants import Grant
from .markup import EMPTY, Markup, fill, join

MAX_CHIPS = 6
"""Most switches that are offered as buttons; more are suggested while typing."""
MAX_SUGGESTED = 1000

_SWITCH = """<fieldset class="field">
<legend>Switch</legend>
{problems}
{choices}
<label for="typed">{label}</label>
<input class="input mono" id="typed" name="typed_switch" value="{typed}" list="known"
 maxlength="200" placeholder="segment:finance" autocomplete="off" autocapitalize="none"
 autocorrect="off" spellcheck="false"{required}{invalid}>
<datalist id="known">{options}</datalist>
<p><small id="typed-hint">Such as {example}; the scopes are {scopes}. To stop everything:
global:all, which you confirm on the next page.</small></p>
</fieldset>"""
_REASON = """<fieldset class="field">
<legend>Reason</legend>
{problems}
<div class="choices">{choices}</div>
<label for="reason">Details or incident number</label>
<textarea class="input" id="reason" name="reason" rows="2" maxlength="{most}" dir="auto"{invalid}>
{text}</textarea>
<p><small id="reason-hint">Shown to everyone whose calls are blocked.</small></p>
</fieldset>"""
_DURATION = """<fieldset class="field">
<legend>For</legend>
{problems}
<div class="choices short">{choices}</div>
<p><small>Then it stays engaged, overdue, until a person releases it.</small></p>
</fieldset>"""
_WHO = """<div class="field">
<label for="{prefix}-name">Your user name</label>
<input class="input" id="{prefix}-name" name="name" value="{name}" required maxlength="150"
 autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false"{wrong}>
</div>
<div class="field">
<label for="{prefix}-code">Your emergency code</label>
<input class="input code mono" id="{prefix}-code" name="code" required maxlength="100"
 autocomplete="off" autocapitalize="characters" autocorrect="off" spellcheck="false"
 enterkeyhint="go" placeholder="ABCDE-FGHIJ-…"{invalid}>
{problems}
<p><small id="{prefix}-code-hint">The 25 letters and digits that you printed. Dashes and case don't
matter.</small></p>
</div>"""
_ENGAGE = Markup("""<div class="stack">
<button class="button engage">Engage</button>
<p><small>Blocks its traffic at once. Safety rules are not asked; another person reviews it
later.</small></p>
</div>""")


def render_engage_form(
    facts: PageFacts,
    form: PageForm,
    grant: Grant | None,
    problems: Mapping[str, Sequence[str]],
    candidates: Sequence[str],
) -> Markup:
    """Return the form with what was entered in `form`, except the code.

    `candidates` are the switches that may have been meant, if that is not clear.
    """
    fields = [
        _render_switch_field(facts, form, problems.get("switch", ()), candidates),
        _render_reason_field(facts, form, problems.get("reason", ())),
        _render_duration_field(form, problems.get("expires_in", ())),
        EMPTY if grant else render_who(form.name, "engage", problems.get("code", ())),
        _ENGAGE,
    ]
    hidden = {"action": ENGAGE, "nonce": form.keep_nonce()}
    if grant is not None:
        hidden["grant"] = grant.text
    return render_form(hidden, join(fields))


def render_who(name: str, prefix: str, problems: Sequence[str]) -> Markup:
    """Return the fields for name and code. `prefix` makes their ids unique.

    The code is visible, because it is typed from paper. Browsers don't remember it: a text field
    with another `autocomplete` than off would be offered to the next person at a shared device.
    """
    return fill(
        _WHO,
        prefix=prefix,
        name=name,
        problems=render_problems(problems, f"{prefix}-code"),
        wrong=mark_invalid(problems, f"{prefix}-code"),
        invalid=mark_invalid(problems, f"{prefix}-code", f"{prefix}-code-hint"),
    )


def list_ready_reasons(facts: PageFacts, chosen: str) -> list[str]:
    """Return the reasons to choose from; `chosen` in place of its template."""
    local = facts.now.astimezone(facts.installation.zone)
    reasons = []
    for template in TEMPLATES:
        is_chosen = chosen.startswith(template.partition("{at}")[0])
        reasons.append(chosen if is_chosen else template.format(at=f"{local:%H:%M %Z}"))
    return reasons


def _render_switch_field(
    facts: PageFacts, form: PageForm, problems: Sequence[str], candidates: Sequence[str]
) -> Markup:
    engaged = {entry.id for entry in facts.entries if entry.state == "engaged"}
    stoppable = sorted(facts.known - engaged - {GLOBAL_ID})
    chips = list(candidates) or (stoppable if len(stoppable) <= MAX_CHIPS else [])
    if form.switch and not candidates and form.switch not in chips:
        chips = [form.switch, *chips]
    choices = [
        render_choice("switch", each, each, is_checked=each == form.switch and not candidates)
        for each in chips
    ]
    options = [fill('<option value="{id}">', id=each) for each in stoppable[:MAX_SUGGESTED]]
    return fill(
        _SWITCH,
        problems=render_problems(problems, "typed"),
        choices=fill('<div class="choices">{all}</div>', all=join(choices)) if choices else EMPTY,
        label="Or the scope and key of another" if choices else "Scope and key",
        typed="" if candidates else form.typed_switch,
        required=EMPTY if choices else " required",
        invalid=mark_invalid(problems, "typed", "typed-hint"),
        options=join(options, ""),
        example=keyed_scopes()[0].example_id,
        scopes=", ".join(scope.name for scope in keyed_scopes()),
    )


def _render_reason_field(facts: PageFacts, form: PageForm, problems: Sequence[str]) -> Markup:
    labels = {reason: reason for reason in list_ready_reasons(facts, form.ready_reason)}
    labels[OTHER_REASON] = "Other, written below"
    choices = [
        render_choice(
            "ready_reason", value, label, is_checked=value == form.ready_reason, is_required=True
        )
        for value, label in labels.items()
    ]
    return fill(
        _REASON,
        problems=render_problems(problems, "reason"),
        choices=join(choices),
        most=MAX_CHARACTERS,
        invalid=mark_invalid(problems, "reason", "reason-hint"),
        text=form.reason,
    )


def _render_duration_field(form: PageForm, problems: Sequence[str]) -> Markup:
    choices = [
        render_choice("expires_in", value, label, is_checked=value == form.expires_in)
        for value, label in OFFERED_DURATIONS.items()
    ]
    return fill(_DURATION, problems=render_problems(problems, "expires_in"), choices=join(choices))
