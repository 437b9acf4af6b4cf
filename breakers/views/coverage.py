"""The fallback matrix: each dependency's fallback, and the gaps."""

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from breakers.map import fallback_coverage
from breakers.models.registry import Criticality
from breakers.views import live
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in


@signed_in
@require_GET
def fallbacks_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    asked = fallback_coverage.parse_filter(request.GET)
    matrix = fallback_coverage.load_matrix(asked, now)
    context = {
        "now": now,
        "asked": asked,
        "matrix": matrix,
        "gaps": [(gap, matrix.counts[gap.name]) for gap in fallback_coverage.GAPS],
        "criticalities": Criticality.values,
    }
    return live.render_page(request, "fallbacks", context)
