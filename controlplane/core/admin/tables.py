"""Read-only admin pages of core's tables."""

from controlplane.core import models

from .site import register_read_only

register_read_only(
    models.AuditEntry,
    "id at actor_type actor_name action target reason",
    order="-id",
    search="=target =action =actor_name",
)
register_read_only(models.AuditRound, "id begun_at reached_id whole_id whole_at problem broken_at")
register_read_only(
    models.Approval,
    "id kind target state requested_by requested_at decided_by",
    order="-id",
    filters="state kind",
)
register_read_only(
    models.Comment, "id kind key author written_at text", order="-id", filters="kind"
)
register_read_only(models.Favorite, "id user kind key created_at", order="-id", filters="kind")
register_read_only(models.SampleEntry, "id kind name loaded_at", order="id", filters="kind")
register_read_only(models.FirstStepsState, "id completed_at hidden_at hidden_by")
register_read_only(
    models.IdempotencyKey,
    "id actor method path key status created_at",
    order="-id",
    search="=key =actor",
)
register_read_only(
    models.Instance,
    "id heard_at stopped_at applied_epoch applied_version reported_at config_version",
    order="id",
    search="=id =service",
)
register_read_only(
    models.DataPlane,
    "process name upstream is_relay release version age_seconds held instances started_at heard_at",
    order="-heard_at",
    search="=name =upstream",
)
register_read_only(
    models.Acknowledgement,
    "id acknowledged_at instance epoch version",
    order="-id",
    search="=instance",
)
register_read_only(
    models.CheckCount, "id switch seconds start allowed blocked", order="-id", search="=switch"
)
register_read_only(models.Tick, "name ran_at ran_by")
register_read_only(models.Heartbeat, "name at")
register_read_only(
    models.Job,
    "id kind subject state step_index attempts heartbeat_at stuck_at created_at finished_at error",
    order="-id",
    filters="state kind",
    search="=subject =key",
)
register_read_only(
    models.JobStep,
    "id job index name state attempts started_at finished_at error",
    order="-id",
    filters="state",
    search="=job__subject",
    related="job",
)
register_read_only(
    models.JobEffect, "id key job attempted_at done_at", order="-id", search="=key", related="job"
)
register_read_only(
    models.Gate,
    "id key type since verdict observed_at",
    order="-id",
    filters="type verdict",
    search="=key",
)
register_read_only(models.Hold, "id key service why since", order="-id", search="=key =service")
register_read_only(
    models.ExternalVerdict, "name verdict observed_at received_at by", order="name", search="=name"
)
register_read_only(
    models.EventCount,
    "id slo instance began_at ended_at good total",
    order="-id",
    search="=slo =instance",
)
register_read_only(models.Degradation, "id revision level since")
register_read_only(
    models.TripRequest,
    "id switch source fingerprint requested_at tripped why",
    order="-id",
    filters="tripped",
    search="=switch =fingerprint =key",
)
