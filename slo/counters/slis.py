"""The pair of counters of an SLO, or of an edge of a histogram: found, and made when missing."""

from slo.models import Sli, Slo


def get_or_create_sli(slo: Slo) -> Sli:
    """The counters of an SLO; made together with it."""
    found, _ = Sli.objects.get_or_create(slo=slo, defaults={"created_at": slo.created_at})
    return found
