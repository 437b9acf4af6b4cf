"""Helpers that evaluate threshold rules like their tick does, and list open alerts."""

from datetime import datetime

from controlplane.core.models import Tick
from slo.models import Alert
from slo.thresholds import evaluation


def look(now: datetime) -> int:
    """Run one tick; return how many alerts opened or resolved."""
    done = evaluation.evaluate_rules(now)
    Tick.objects.update_or_create(name=evaluation.TICK, defaults={"ran_at": now, "ran_by": "test"})
    return done


def standing() -> set[tuple[str, str]]:
    """Rules and subjects of alerts that are open."""
    return set(Alert.objects.filter(resolved_at__isnull=True).values_list("rule", "subject"))
