"""Read-only Django admin of SLOs. Models with composite primary keys are left out."""

from controlplane.core.admin import register_read_only
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

register_read_only(
    Slo,
    "id name service kind target window_days version changed_at removed_at",
    order="name -id",
    filters="kind",
    search="name service owner",
)
register_read_only(
    SloStatus,
    "slo minute state since remaining_ratio exhausts_at",
    order="slo__name",
    filters="state",
    search="slo__name",
    related="slo",
)
register_read_only(EvaluatedMinute, "minute evaluated_at slos took_ms", order="-minute")
register_read_only(
    Exclusion,
    "id slo starts_at ends_at created_by created_at removed_by removed_at",
    order="-id",
    search="slo__name reason",
    related="slo",
)
register_read_only(
    Alert,
    "id kind rule subject severity opened_at firing_at acknowledged_by resolved_at",
    order="-id",
    filters="kind severity",
    search="rule subject",
)
register_read_only(
    ThresholdRule,
    "name metric statistic window comparison value severity is_enabled built_in changed_at",
    order="name",
    filters="severity is_enabled built_in",
    search="name title metric",
)
register_read_only(
    Sli,
    "id slo metric service edge_ms first last polled_to source_error",
    order="-id",
    search="=slo__name =metric =service",
    related="slo",
)
register_read_only(
    Series,
    "id sli source boot started_at at good total",
    order="-id",
    search="=source =sli__slo__name",
    related="sli",
)
register_read_only(
    DeltaBatch, "id sender batch_id received_at", order="-id", search="=batch_id =sender"
)
register_read_only(
    ReportedEvents,
    "id slo instance began_at ended_at good total",
    order="-id",
    search="=slo =instance",
)
register_read_only(
    DeferredUpdate, "id sli began ended good total covers", order="-id", related="sli"
)
