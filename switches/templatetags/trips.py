"""Template tags of trips: outcomes and evidence."""

import json
from datetime import timedelta
from functools import partial
from typing import Any

from django import template

from controlplane.core import durations
from switches.models.trip import OUTCOME_WORDS
from switches.templatetags.ramps import render_state

register = template.Library()

MAX_SHOWN_EVIDENCE_LENGTH = 8000  # characters; the API has all of it

# outcome → icon, word, tone
OUTCOMES = {
    "tripped": ("trip", OUTCOME_WORDS["tripped"], "engaged"),
    "duplicate": ("copy", OUTCOME_WORDS["duplicate"], "quiet"),
    "engaged": ("engaged", OUTCOME_WORDS["engaged"], "quiet"),
    "person": ("person", OUTCOME_WORDS["person"], "pending"),
    "refused": ("close", OUTCOME_WORDS["refused"], "quiet"),
}


register.simple_tag(partial(render_state, OUTCOMES), name="outcome")


@register.filter
def outcome_word(name: str) -> str:
    return OUTCOMES.get(name, ("", name, ""))[1]


@register.filter
def minutes(count: int) -> str:
    """Return minutes as a readable duration: `24 h`, `1 h 30 min`."""
    return durations.format_readable(timedelta(minutes=count))


@register.filter
def evidence(found: Any) -> str:
    """Return evidence as indented JSON, truncated if long."""
    text = json.dumps(found, indent=2, ensure_ascii=False)
    if len(text) <= MAX_SHOWN_EVIDENCE_LENGTH:
        return text
    return f"{text[:MAX_SHOWN_EVIDENCE_LENGTH]}\n… {len(text) - MAX_SHOWN_EVIDENCE_LENGTH:,} more"
