"""Message templates of ramps."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from switches.message_templates import engaged_buttons, format_expiry

ABORT_BUTTON = ("abort_ramp",)

_WHERE = "{switch} RAMPING {percent} %, step {step}"
_WHY_ENGAGED = ("Engaged because", "reason")
_EXPIRES = ("Expires", format_expiry)
_LATER_STATES = frozenset(
    f"ramp.{state}" for state in ("advanced", "held", "paused", "compensated", "aborted")
) | {"switch.released"}

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "ramp.started",
        "▶️",
        f"{_WHERE}: its ramp has begun",
        (("By", "by"), ("Why", "said"), ("Plan", "plan"), _WHY_ENGAGED),
        buttons=ABORT_BUTTON,
    ),
    MessageTemplate(
        "ramp.advanced",
        "⏩",
        _WHERE,
        (("By", "by"), ("Why", "said"), ("Plan", "plan"), _WHY_ENGAGED),
        buttons=ABORT_BUTTON,
        superseded_by=_LATER_STATES,
    ),
    MessageTemplate(
        "ramp.held",
        "✋",
        f"{_WHERE}: it HOLDS",
        (("Why", "said"), ("Taken back unless it goes on by", "held_until_at"), _WHY_ENGAGED),
        severity="warning",
        buttons=ABORT_BUTTON,
    ),
    MessageTemplate(
        "ramp.paused",
        "⏸️",
        f"{_WHERE}: PAUSED",
        (("By", "by"), ("Why", "said"), _WHY_ENGAGED),
        severity="warning",
        buttons=ABORT_BUTTON,
    ),
    MessageTemplate(
        "ramp.resumed",
        "▶️",
        f"{_WHERE}: it goes on",
        (("By", "by"), ("Why", "said"), _WHY_ENGAGED),
        buttons=ABORT_BUTTON,
        superseded_by=_LATER_STATES,
    ),
    MessageTemplate(
        "ramp.compensated",
        "⏪",
        "{switch} ENGAGED again: its ramp was taken back at step {step}",
        (("Why", "said"), ("Gates", "gates"), ("What to do", "to_do"), _WHY_ENGAGED, _EXPIRES),
        severity="critical",
        buttons=engaged_buttons,
    ),
    MessageTemplate(
        "ramp.aborted",
        "⏹️",
        "{switch} ENGAGED: its ramp was aborted",
        (("By", "by"), ("Why", "said"), ("What to do", "to_do"), _WHY_ENGAGED, _EXPIRES),
        severity="critical",
        buttons=engaged_buttons,
    ),
    MessageTemplate(
        "ramp.failed",
        "🚨",
        "{switch} still lets {percent} % flow: its ramp FAILED and could not be taken back",
        (("Why", "said"), ("What to do", "to_do"), _WHY_ENGAGED),
        severity="critical",
        buttons=ABORT_BUTTON,
        is_urgent=True,
    ),
    MessageTemplate(
        "ramps.started",
        "▶️",
        "Ramps that have begun by themselves: {count}",
        (("Of", "list"), ("Why", "first_said")),
    ),
    MessageTemplate(
        "ramps.released",
        "✅",
        "Switches released at the end of their ramps: {count}",
        (("They are", "list"),),
    ),
    MessageTemplate(
        "ramps.held",
        "✋",
        "More ramps that HOLD: {count}",
        (("Of", "list"), ("Why, the first of them", "first_said")),
        severity="warning",
    ),
    MessageTemplate(
        "ramps.compensated",
        "⏪",
        "More switches ENGAGED again, their ramps taken back: {count}",
        (("They are", "list"), ("Why, the first of them", "first_said")),
        severity="critical",
    ),
)
