"""Message templates of overrides, outages and probes."""

from collections import defaultdict
from collections.abc import Callable

from controlplane.core.message_templates import MESSAGE_TEMPLATES, Facts, MessageTemplate

from .names import format_name
from .templatetags.breakers import MODES


def _fill(template: str) -> Callable[[Facts], str]:
    """Return a function that fills in the dependency and the override's mode as screens do."""

    def fill(facts: Facts) -> str:
        shown = {
            "dependency": format_name(str(facts.get("dependency", "?"))),
            "mode": _mode_word(facts, "mode").lower(),
        }
        return template.format_map(defaultdict(lambda: "?", {**facts, **shown}))

    return fill


def _mode_word(facts: Facts, fact: str) -> str:
    mode = str(facts.get(fact) or "")
    return MODES.get(mode, (mode, ""))[0]


MESSAGE_TEMPLATES.register(
    MessageTemplate(
        "override.set",
        "🎛️",
        _fill("{dependency} is overridden: {mode}"),
        (
            ("By", "by"),
            ("Reason", "reason"),
            ("For", "lasts"),
            ("Until", "expires_at"),
            ("Replaces", lambda facts: _mode_word(facts, "replaces")),
        ),
        when="a breaker was forced",
    ),
    MessageTemplate(
        "override.ended",
        "🎛️",
        _fill("{dependency} is no longer overridden ({mode}: {why})"),
        (
            ("Ended by", "ended_by"),
            ("Why", "justification"),
            ("Now in effect", lambda facts: _mode_word(facts, "restored")),
            ("Set by", "by"),
            ("Reason for the override", "reason"),
        ),
        when="an override ended, or was removed",
    ),
    MessageTemplate(
        "outage.acted",
        "🔌",
        _fill("Outage of {dependency}: {done}"),
        (("Observed", "said"), ("Policy", "policy"), ("Note", "why")),
        when="an outage policy acted on an open breaker",
        severity="warning",
    ),
    MessageTemplate(
        "outage.over",
        "🌤️",
        _fill("Outage of {dependency} {how}"),
        (("Why", "why"), ("Since", "since_at"), ("Still in effect", "said")),
        when="the outage is over",
    ),
    MessageTemplate(
        "probe.away",
        "📡",
        "{name} does not respond",
        (
            ("Probe", "said"),
            ("Not working", "fails"),
            ("Still works", "works"),
            ("Owner", "owner"),
            ("Runbook", "runbook"),
        ),
        when="a service does not respond to its probe",
        severity="warning",
    ),
    MessageTemplate(
        "probe.back",
        "🌤️",
        "{name} responds again",
        (("Unavailable since", "since_at"),),
        when="the service responds again",
    ),
)
