"""What is told of breakers and dependencies, of services that are away, and of how far the
installation has degraded."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

BREAKERS: Mapping[str, Wording] = {
    "override.set": Wording(
        "🎛️",
        "{dependency} is overridden: {mode}",
        (
            ("By", "by"),
            ("Reason", "reason"),
            ("For", "lasts"),
            ("Until", "expires_at"),
            ("In place of", "replaces"),
        ),
    ),
    "override.ended": Wording(
        "🎛️",
        "{dependency} is no longer overridden ({mode}: {why})",
        (
            ("Ended by", "ended_by"),
            ("Why", "justification"),
            ("It was set by", "by"),
            ("It was set because", "reason"),
        ),
    ),
    "outage.acted": Wording(
        "🔌",
        "Outage of {dependency}: {done}",
        (("What was seen", "said"), ("The policy", "policy"), ("But", "why")),
        severity="warning",
    ),
    "outage.over": Wording(
        "🌤️",
        "The outage that {dependency} reported {how}",
        (("Why", "why"), ("It lasted since", "since_at"), ("What still stands", "said")),
    ),
    "probe.away": Wording(
        "📡",
        "{name} does not answer",
        (
            ("What was tried", "said"),
            ("Gone meanwhile", "fails"),
            ("Still works", "works"),
            ("Owner", "owner"),
            ("Runbook", "runbook"),
        ),
        severity="warning",
    ),
    "probe.back": Wording("🌤️", "{name} answers again", (("It was away since", "since_at"),)),
    "degradation.changed": Wording(
        "📉",
        "Degradation: level {level}, {name}",
        (
            ("Why", "causes"),
            ("Gone meanwhile", "fails"),
            ("Still works", "works"),
            ("Before", "was"),
        ),
    ),
}
