"""Read-only Django admin of SLOs; changes are made on their own pages.

Minutes, hours and samples are left out: Django's admin can't show composite keys, and an SLO's page
draws them.
"""

from django.contrib import admin
from django.db.models import Model

from controlplane.core.admin import ReadOnly
from slo.models import (
    Alert,
    DeferredUpdate,
    DeltaBatch,
    EvaluatedMinute,
    Exclusion,
    ReportedEvents,
    Series,
    Sli,
    Slo,
    SloStatus,
    ThresholdRule,
)


def _register(
    model: type[Model],
    columns: str,
    *,
    order: str,
    filters: str = "",
    search: str = "",
    related: str = "",
) -> None:
    """Register a read-only page of a table; options are names separated by spaces."""
    options = {
        "list_display": tuple(columns.split()),
        "ordering": tuple(order.split()),
        "list_filter": tuple(filters.split()),
        "search_fields": tuple(search.split()),
        "list_select_related": tuple(related.split()),
    }
    admin.site.register(model, type(f"{model.__name__}Admin", (ReadOnly,), options))


_register(
    Slo,
    "id name service kind target window_days version changed_at removed_at",
    order="name -id",
    filters="kind",
    search="name service owner",
)
_register(
    SloStatus,
    "slo minute state since remaining_ratio exhausts_at",
    order="slo__name",
    filters="state",
    search="slo__name",
    related="slo",
)
_register(EvaluatedMinute, "minute judged_at slos took_ms", order="-minute")
_register(
    Exclusion,
    "id slo starts_at ends_at created_by created_at removed_by removed_at",
    order="-id",
    search="slo__name reason",
    related="slo",
)
_register(
    Alert,
    "id kind rule subject severity opened_at firing_at acknowledged_by resolved_at",
    order="-id",
    filters="kind severity",
    search="rule subject",
)
_register(
    ThresholdRule,
    "name metric statistic window comparison value severity is_enabled built_in changed_at",
    order="name",
    filters="severity is_enabled built_in",
    search="name title metric",
)
_register(
    Sli,
    "id slo metric service edge_ms first last asked_to source_error",
    order="-id",
    search="=slo__name =metric =service",
    related="slo",
)
_register(
    Series,
    "id sli source boot started_at at good total",
    order="-id",
    search="=source =sli__slo__name",
    related="sli",
)
_register(DeltaBatch, "id sender batch_id received_at", order="-id", search="=batch_id =sender")
_register(
    ReportedEvents,
    "id slo instance began_at ended_at good total",
    order="-id",
    search="=slo =instance",
)
_register(DeferredUpdate, "id sli began ended good total covers", order="-id", related="sli")
