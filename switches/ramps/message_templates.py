"""Message templates of ramps."""

from controlplane.core.message_templates import MESSAGE_TEMPLATES, MessageTemplate
from switches.message_templates import WHY_ENGAGED, engaged_buttons, format_expiry

ABORT_BUTTON = ("abort_ramp",)

_WHERE = "{switch} RAMPING {percent} %, step {step}"
_EXPIRES = ("Expires", format_expiry)
_LATER_STATES = frozenset(
    f"ramp.{state}" for state in ("advanced", "held", "paused", "compensated", "aborted")
) | {"switch.released"}

MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "ramp.started",
        "▶️",
        f"{_WHERE}: ramp started",
        (("By", "by"), ("Why", "said"), ("Plan", "plan"), WHY_ENGAGED),
        when="a ramp started with its first step",
        buttons=ABORT_BUTTON,
    ),
    MessageTemplate(
        "ramp.advanced",
        "⏩",
        _WHERE,
        (("By", "by"), ("Why", "said"), ("Plan", "plan"), WHY_ENGAGED),
        when="a ramp started its next step",
        buttons=ABORT_BUTTON,
        superseded_by=_LATER_STATES,
    ),
    MessageTemplate(
        "ramp.held",
        "✋",
        f"{_WHERE}: on HOLD",
        (("Why", "said"), ("Engaged again unless it continues by", "held_until_at"), WHY_ENGAGED),
        when="a ramp holds: a gate has no data, or waits for a person",
        severity="warning",
        buttons=ABORT_BUTTON,
    ),
    MessageTemplate(
        "ramp.paused",
        "⏸️",
        f"{_WHERE}: PAUSED",
        (("By", "by"), ("Why", "said"), WHY_ENGAGED),
        when="someone paused a ramp",
        severity="warning",
        buttons=ABORT_BUTTON,
    ),
    MessageTemplate(
        "ramp.resumed",
        "▶️",
        f"{_WHERE}: continues",
        (("By", "by"), ("Why", "said"), WHY_ENGAGED),
        when="someone resumed a ramp",
        buttons=ABORT_BUTTON,
        superseded_by=_LATER_STATES,
    ),
    MessageTemplate(
        "ramp.compensated",
        "⏪",
        "{switch} ENGAGED again: its ramp failed at step {step}",
        (("Why", "said"), ("Gates", "gates"), ("What to do", "to_do"), WHY_ENGAGED, _EXPIRES),
        when="a gate failed: the switch is engaged again",
        severity="critical",
        buttons=engaged_buttons,
    ),
    MessageTemplate(
        "ramp.aborted",
        "⏹️",
        "{switch} ENGAGED: its ramp was aborted",
        (("By", "by"), ("Why", "said"), ("What to do", "to_do"), WHY_ENGAGED, _EXPIRES),
        when="someone aborted a ramp: the switch is engaged again",
        severity="critical",
        buttons=engaged_buttons,
    ),
    MessageTemplate(
        "ramp.failed",
        "🚨",
        "{switch} still allows {percent} %: its ramp FAILED and could not be stopped",
        (("Why", "said"), ("What to do", "to_do"), WHY_ENGAGED),
        when="**the switch could not be engaged again: some traffic may still flow**",
        severity="critical",
        buttons=ABORT_BUTTON,
        is_urgent=True,
    ),
    MessageTemplate(
        "ramps.started",
        "▶️",
        "Ramps started at expiry: {count}",
        (("Ramps", "list"), ("Why", "first_said")),
        when="several ramps: as `ramp.started`",
    ),
    MessageTemplate(
        "ramps.released",
        "✅",
        "Switches released at the end of their ramps: {count}",
        (("Switches", "list"),),
        when="several switches were released at the end of their ramps",
    ),
    MessageTemplate(
        "ramps.held",
        "✋",
        "More ramps on HOLD: {count}",
        (("Ramps", "list"), ("First reason", "first_said")),
        when="several ramps: as `ramp.held`",
        severity="warning",
    ),
    MessageTemplate(
        "ramps.compensated",
        "⏪",
        "More switches ENGAGED again, ramps failed: {count}",
        (("Switches", "list"), ("First reason", "first_said")),
        when="several ramps: as `ramp.compensated`",
        severity="critical",
    ),
)
