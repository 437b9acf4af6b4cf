"""What is told of long work: jobs that stand still, fail, or fare worse than they should."""

from collections.abc import Mapping

from controlplane.core.outbox.wordings.shape import Wording

JOBS: Mapping[str, Wording] = {
    "job.stuck": Wording(
        "🧊",
        "{title} {job} is stuck: nobody works on it",
        (
            ("About", "about"),
            ("Last sign of life", "silent_since_at"),
            ("Last worker", "worker"),
            ("Step", "step"),
            ("Begun by", "by"),
        ),
        severity="critical",
        buttons=("acknowledge",),
    ),
    "job.recovered": Wording(
        "🌤️",
        "{title} {job} goes on",
        (("About", "about"), ("It was stuck since", "since_at"), ("Step", "step")),
    ),
    "job.failed": Wording(
        "🧯",
        "{title} {job} has failed; what it did is taken back",
        (("About", "about"), ("Why", "error"), ("Step", "step"), ("Begun by", "by")),
        severity="warning",
    ),
    "job.compensation_failed": Wording(
        "🚨",
        "{title} {job} has failed, and what it did could not be taken back",
        (
            ("About", "about"),
            ("Why not", "error"),
            ("Step", "step"),
            ("What to do", "to_do"),
            ("Begun by", "by"),
        ),
        severity="critical",
        buttons=("acknowledge",),
    ),
    "jobs.alarm": Wording(
        "⏱️",
        "{said}",
        (("What to do", "to_do"),),
        severity="warning",
        buttons=("acknowledge",),
    ),
    "jobs.alarm_over": Wording(
        "🌤️",
        "Over: {said}",
        (("It was so since", "since_at"),),
    ),
}
