"""What is told of switches and of the time that they are engaged."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

OF_ENGAGED = ("acknowledge", "extend")
"""The buttons of every state of a switch that is engaged until some time."""

OF_PERMANENT = ("acknowledge",)

SWITCHES: Mapping[str, Wording] = {
    "switch.engaged": Wording(
        "🛑",
        "{switch} ENGAGED: services are told to block its traffic",
        (("By", "by"), ("Reason", "reason"), ("Expires", "expires_at")),
        severity="critical",
        buttons=OF_ENGAGED,
    ),
    "switch.broke_glass": Wording(
        "🚨",
        "GLASS BROKEN: {switch}, {did} against the rule “{rule}”",
        (
            ("By", "by"),
            ("Why the rule had to yield", "said"),
            ("Engaged because", "reason"),
            ("Expires", "expires_at"),
        ),
        severity="critical",
        buttons=OF_ENGAGED,
    ),
    "switch.held": Wording(
        "🔒",
        "{switch} will be held at its expiry",
        (("Why", "said"), ("By", "by"), ("Engaged because", "reason"), ("Expires", "expires_at")),
        buttons=OF_ENGAGED,
    ),
    "switch.extended": Wording(
        "⏳",
        "{switch} stays ENGAGED for longer",
        (
            ("By", "by"),
            ("Why longer", "said"),
            ("Engaged because", "reason"),
            ("Expires", "expires_at"),
            ("Re-confirm by", "reconfirm_due_at"),
        ),
        buttons=OF_ENGAGED,
    ),
    "switch.released": Wording(
        "✅",
        "{switch} released: services are told to let its traffic flow",
        (("By", "by"), ("Why", "said"), ("Was engaged because", "reason")),
    ),
    "switch.undone": Wording(
        "↩️",
        "{switch} engage undone: services are told to let its traffic flow",
        (("By", "by"), ("Was engaged because", "reason")),
    ),
    "episode.overdue": Wording(
        "⏰",
        "{switch} is OVERDUE: past its expiry and still engaged",
        (
            ("What to do", "said"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
            ("Expired", "expires_at"),
        ),
        severity="critical",
        buttons=OF_ENGAGED,
    ),
    "episode.expires_soon": Wording(
        "⏳",
        "{switch} expires in {left}",
        (
            ("What happens", "said"),
            ("Expires", "expires_at"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
        ),
        severity="warning",
        buttons=OF_ENGAGED,
    ),
    "episode.acknowledged": Wording(
        "👀",
        "{switch} acknowledged: somebody is on it",
        (("By", "by"), ("Comment", "said")),
    ),
    "episode.reconfirm_soon": Wording(
        "📌",
        "{switch} is permanent and has to be re-confirmed within {left}",
        (
            ("What to do", "said"),
            ("Re-confirm by", "reconfirm_due_at"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
        ),
        severity="warning",
        buttons=OF_PERMANENT,
    ),
    "episode.reconfirm_due": Wording(
        "📌",
        "{switch} is permanent and was NOT re-confirmed this week",
        (
            ("What to do", "said"),
            ("Due since", "reconfirm_due_at"),
            ("Engaged by", "engaged_by"),
            ("Engaged because", "reason"),
        ),
        severity="warning",
        buttons=OF_PERMANENT,
    ),
    "episode.reconfirmed": Wording(
        "📌",
        "{switch} re-confirmed: it stays ENGAGED for good",
        (("By", "by"), ("Why it has to stay", "said"), ("Re-confirm again by", "reconfirm_due_at")),
        buttons=OF_PERMANENT,
    ),
    "episodes.expire_soon": Wording(
        "⏳",
        "{count} switches are near their expiry",
        (
            ("Stay engaged then, OVERDUE", "held"),
            ("A ramp begins then", "ramping"),
            ("Released by themselves then", "released"),
            ("Permanent, to be re-confirmed", "permanent"),
        ),
        severity="warning",
    ),
    "episodes.expired": Wording(
        "⏰",
        "{count} switches have reached their expiry",
        (
            ("Held and OVERDUE", "held"),
            ("A ramp begins", "ramping"),
            ("Released, unless a safety rule forbids it", "released"),
        ),
        severity="critical",
    ),
    "episodes.reconfirm_due": Wording(
        "📌",
        "{count} permanent switches were NOT re-confirmed this week",
        (("Re-confirm or release", "permanent"),),
        severity="warning",
    ),
}
