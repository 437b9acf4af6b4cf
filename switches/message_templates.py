"""Message templates of switches and episodes."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from controlplane.core.message_templates import (
    MESSAGE_TEMPLATES,
    Facts,
    MessageTemplate,
    format_time,
)
from switches.models import OnExpiry

_EXPIRY_POLICIES: Mapping[str, str] = {
    OnExpiry.HOLD: "then stays engaged, OVERDUE",
    OnExpiry.RAMP: "then starts a ramp",
    OnExpiry.RELEASE: "then is released",
}
_AT_ONCE = timedelta(seconds=10)
"""Time within which the database receives an emergency order unless there is an outage."""
_LATER_ENDS = frozenset({"switch.extended", "switch.released", "switch.undone"})


def format_expiry(facts: Facts) -> str:
    """Return an episode's expiry time and the action at expiry as text."""
    if "expires_at" not in facts:
        return ""
    if facts["expires_at"] is None:
        return "never (permanent)"
    policy = _EXPIRY_POLICIES.get(str(facts.get("on_expiry")))
    expires_at = format_time(facts["expires_at"])
    return f"{expires_at}, {policy}" if policy else expires_at


def format_emergency(facts: Facts) -> str:
    """Return who gave the emergency order that engaged the switch, where and when; "" if none."""
    order = facts.get("emergency")
    if not order:
        return ""
    place = f"{'relay' if 'relay' in order else 'data plane'} {order['plane']}"
    given = f"{order['by']} engaged it on the {place} at {format_time(order['at'])}"
    received_at = datetime.fromisoformat(order["received_at"])
    if received_at - datetime.fromisoformat(order["at"]) <= _AT_ONCE:
        return given
    return f"during the outage, {given}; stored at {format_time(order['received_at'])}"


def format_lost_version(facts: Facts) -> str:
    """Return the lost version by which the switch was engaged again; "" if by none."""
    lost = facts.get("lost_version")
    if not lost:
        return ""
    return f"version {lost['version']}, which PostgreSQL has lost and {lost['plane']} has"


def engaged_buttons(facts: Facts) -> tuple[str, ...]:
    """Return the buttons below a message about an engaged switch; no `extend` if permanent."""
    if facts.get("did") == "release":
        return ()
    is_permanent = "expires_at" in facts and facts["expires_at"] is None
    return ("acknowledge",) if is_permanent else ("acknowledge", "extend")


_EXPIRES = ("Expires", format_expiry)
_EMERGENCY = ("Emergency order", format_emergency)
_LOST = ("Lost engagement", format_lost_version)
WHY_ENGAGED = ("Reason for engaging", "reason")
"""Field of messages that may also give a reason of their own."""
_ENGAGED = (("Engaged by", "engaged_by"), ("Reason", "reason"))
_PERMANENT_BUTTONS = ("acknowledge",)


MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "switch.engaged",
        "🛑",
        "{switch} ENGAGED: services are told to block its traffic",
        (("By", "by"), ("Reason", "reason"), _EMERGENCY, _LOST, _EXPIRES),
        when="a switch was engaged",
        severity="critical",
        buttons=engaged_buttons,
        starts_thread=True,
    ),
    MessageTemplate(
        "switch.broke_glass",
        "🚨",
        "BREAK-GLASS: {switch}, {did} against the rule “{rule}”",
        (("By", "by"), ("Reason for break-glass", "said"), WHY_ENGAGED, _EXPIRES),
        when="a safety rule was overridden to engage or release",
        severity="critical",
        buttons=engaged_buttons,
    ),
    MessageTemplate(
        "switch.held",
        "🔒",
        "{switch} will stay engaged at its expiry",
        (("Why", "said"), ("By", "by"), WHY_ENGAGED, _EXPIRES),
        when="a safety rule now covers the switch: at its expiry it stays engaged",
        buttons=engaged_buttons,
    ),
    MessageTemplate(
        "switch.extended",
        "⏳",
        "{switch} stays ENGAGED for longer",
        (
            ("By", "by"),
            ("Reason", "said"),
            WHY_ENGAGED,
            _EMERGENCY,
            _EXPIRES,
            ("Re-confirm by", "reconfirm_due_at"),
        ),
        when="a switch stays engaged for longer, or permanently",
        buttons=engaged_buttons,
        superseded_by=_LATER_ENDS,
    ),
    MessageTemplate(
        "switch.released",
        "✅",
        "{switch} released: services are told to allow its traffic",
        (("By", "by"), ("Why", "said"), WHY_ENGAGED),
        when="a switch was released: by hand, by its ramp or at its expiry",
        incident_action="resolve",
    ),
    MessageTemplate(
        "switch.undone",
        "↩️",
        "Engagement of {switch} undone: services are told to allow its traffic",
        (("By", "by"), WHY_ENGAGED),
        when="an engagement was undone within 30 s",
        incident_action="resolve",
    ),
    MessageTemplate(
        "episode.overdue",
        "⏰",
        "{switch} is OVERDUE: past its expiry and still engaged",
        (("What to do", "said"), *_ENGAGED, ("Expired", format_expiry)),
        when="a switch is past its expiry and still engaged",
        severity="critical",
        buttons=engaged_buttons,
        is_urgent=True,
    ),
    MessageTemplate(
        "episode.expires_soon",
        "⏳",
        "{switch} expires in {left}",
        (("At expiry", "said"), _EXPIRES, *_ENGAGED),
        when="24 h and 1 h before its expiry",
        severity="warning",
        buttons=engaged_buttons,
        is_digestible=True,
    ),
    MessageTemplate(
        "episode.acknowledged",
        "👀",
        "{switch} acknowledged",
        (("By", "by"), ("Comment", "said")),
        when="someone acknowledged the engaged switch",
        changes_state=False,
        incident_action="acknowledge",
    ),
    MessageTemplate(
        "episode.reconfirm_soon",
        "📌",
        "{switch} is permanent: re-confirm within {left}",
        (("What to do", "said"), ("Re-confirm by", "reconfirm_due_at"), *_ENGAGED),
        when="a permanent switch must be re-confirmed soon",
        severity="warning",
        buttons=_PERMANENT_BUTTONS,
    ),
    MessageTemplate(
        "episode.reconfirm_due",
        "📌",
        "{switch} is permanent and was NOT re-confirmed this week",
        (("What to do", "said"), ("Due since", "reconfirm_due_at"), *_ENGAGED),
        when="a permanent switch was not re-confirmed in time",
        severity="warning",
        buttons=_PERMANENT_BUTTONS,
    ),
    MessageTemplate(
        "episode.reconfirmed",
        "📌",
        "{switch} re-confirmed: stays ENGAGED permanently",
        (("By", "by"), ("Reason", "said"), ("Re-confirm again by", "reconfirm_due_at")),
        when="a permanent switch was re-confirmed",
        buttons=_PERMANENT_BUTTONS,
    ),
    MessageTemplate(
        "episodes.expire_soon",
        "⏳",
        "{count} switches are near their expiry",
        (
            ("Stay engaged, OVERDUE", "held"),
            ("Start a ramp", "ramping"),
            ("Released automatically", "released"),
            ("Permanent, to be re-confirmed", "permanent"),
        ),
        when="several switches: as `episode.expires_soon`",
        severity="warning",
    ),
    MessageTemplate(
        "episodes.expired",
        "⏰",
        "{count} switches have reached their expiry",
        (
            ("Held and OVERDUE", "held"),
            ("Ramp starts", "ramping"),
            ("Released, unless a safety rule forbids it", "released"),
        ),
        when="several switches have reached their expiry",
        severity="critical",
    ),
    MessageTemplate(
        "episodes.reconfirm_due",
        "📌",
        "{count} permanent switches were NOT re-confirmed this week",
        (("Re-confirm or release", "permanent"),),
        when="several switches: as `episode.reconfirm_due`",
        severity="warning",
    ),
)
