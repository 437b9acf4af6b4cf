"""What is told of ramps: how far they have come, and why they hold or were taken back."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

OF_RAMPING = ("abort_ramp",)
"""The button of every state of a switch that lets a share flow."""

OF_ENGAGED_AGAIN = ("acknowledge", "extend")

_WHERE = "{switch} RAMPING {percent} %, step {step}"
_WHY_ENGAGED = ("Engaged because", "reason")
_GATES = ("Gates", "gates")

RAMPS: Mapping[str, Wording] = {
    "ramp.started": Wording(
        "▶️",
        f"{_WHERE}: its ramp has begun",
        (("By", "by"), ("Why", "said"), ("Plan", "plan"), _WHY_ENGAGED),
        buttons=OF_RAMPING,
    ),
    "ramp.advanced": Wording(
        "⏩",
        _WHERE,
        (("By", "by"), ("Why", "said"), ("Plan", "plan"), _WHY_ENGAGED),
        buttons=OF_RAMPING,
    ),
    "ramp.held": Wording(
        "✋",
        f"{_WHERE}: it HOLDS",
        (("Why", "said"), ("Taken back unless it goes on by", "held_until_at"), _WHY_ENGAGED),
        severity="warning",
        buttons=OF_RAMPING,
    ),
    "ramp.paused": Wording(
        "⏸️",
        f"{_WHERE}: PAUSED",
        (("By", "by"), ("Why", "said"), _WHY_ENGAGED),
        severity="warning",
        buttons=OF_RAMPING,
    ),
    "ramp.resumed": Wording(
        "▶️",
        f"{_WHERE}: it goes on",
        (("By", "by"), ("Why", "said"), _WHY_ENGAGED),
        buttons=OF_RAMPING,
    ),
    "ramp.compensated": Wording(
        "⏪",
        "{switch} ENGAGED again: its ramp was taken back at step {step}",
        (
            ("Why", "said"),
            _GATES,
            ("What to do", "to_do"),
            _WHY_ENGAGED,
            ("Expires", "expires_at"),
        ),
        severity="critical",
        buttons=OF_ENGAGED_AGAIN,
    ),
    "ramp.aborted": Wording(
        "⏹️",
        "{switch} ENGAGED: its ramp was aborted",
        (
            ("By", "by"),
            ("Why", "said"),
            ("What to do", "to_do"),
            _WHY_ENGAGED,
            ("Expires", "expires_at"),
        ),
        severity="critical",
        buttons=OF_ENGAGED_AGAIN,
    ),
    "ramp.failed": Wording(
        "🚨",
        "{switch} still lets {percent} % flow: its ramp FAILED and could not be taken back",
        (("Why", "said"), ("What to do", "to_do"), _WHY_ENGAGED),
        severity="critical",
        buttons=OF_RAMPING,
    ),
    "ramps.started": Wording(
        "▶️",
        "Ramps that have begun by themselves: {count}",
        (("Of", "list"), ("Why", "first_said")),
    ),
    "ramps.released": Wording(
        "✅",
        "Switches released at the end of their ramps: {count}",
        (("They are", "list"),),
    ),
    "ramps.held": Wording(
        "✋",
        "More ramps that HOLD: {count}",
        (("Of", "list"), ("Why, the first of them", "first_said")),
        severity="warning",
    ),
    "ramps.compensated": Wording(
        "⏪",
        "More switches ENGAGED again, their ramps taken back: {count}",
        (("They are", "list"), ("Why, the first of them", "first_said")),
        severity="critical",
    ),
}
