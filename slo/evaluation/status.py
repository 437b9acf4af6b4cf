"""How an SLO stands, as the API shows it."""

from datetime import datetime, timedelta
from typing import Any

from controlplane.core.clock import db_now
from slo.arithmetic.minutes import last_ended
from slo.models import Slo

from . import evaluator

EVALUATION_DELAY = timedelta(seconds=20)
"""So long after its end a minute is judged: who counted it needs a moment to tell, and a server
that is asked for it a moment to be asked."""


def load_status(slo: Slo, at: datetime | None = None) -> dict[str, Any]:
    """The body of `GET …/status`: as of the last minute that is judged by now, or of the last one
    that had ended at `at`; computed anew, from the counters."""
    minute = due_minute(db_now()) if at is None else last_ended(at)
    (seen,) = evaluator.evaluate_slos([slo], minute)
    return seen.evaluation.document()


def due_minute(now: datetime) -> int:
    """The minute whose turn it is to be judged."""
    return last_ended(now - EVALUATION_DELAY)
