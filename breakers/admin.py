"""Read-only Django admin of the breaker tables."""

from breakers.models import (
    Alarm,
    BreakerState,
    Channel,
    Dependency,
    Minute,
    Override,
    Probe,
    Registry,
    Service,
    Transition,
)
from controlplane.core.admin import register_read_only

register_read_only(Registry, "id version changed_at", order="id")
register_read_only(
    Service,
    "slug name kind level owner probe_url changed_at",
    filters="kind level",
    search="slug name owner",
    order="slug",
)
register_read_only(
    Dependency,
    "id caller callee protocol criticality owner version changed_at removed_at",
    filters="criticality mode",
    search="caller callee owner",
    order="caller callee",
)
register_read_only(
    Channel,
    "name kind producer consumer group protocol changed_at",
    filters="kind",
    search="name",
    order="name",
)
register_read_only(
    Override,
    "id dependency mode set_by_name set_at expires_at version ended_at ended_why ended_by",
    filters="mode ended_why",
    related="dependency",
    search="dependency__caller dependency__callee reason",
    order="-id",
)
register_read_only(
    BreakerState,
    "id dependency instance state mode since failure_rate slow_rate calls changed_at",
    filters="state mode",
    related="dependency",
    search="=instance =dependency__caller =dependency__callee",
    order="-id",
)
register_read_only(
    Transition,
    "id dependency instance n from_state to_state at received_at cause",
    filters="to_state",
    related="dependency",
    search="=instance =dependency__caller =dependency__callee",
    order="-id",
)
register_read_only(
    Minute,
    "id dependency minute worst open half_open instances success failure timeout slow "
    "rejected fallback retry",
    related="dependency",
    search="=dependency__caller =dependency__callee",
    order="-id",
)
register_read_only(
    Alarm,
    "id rule subject severity value limit since closed_at",
    filters="rule severity",
    search="subject",
    order="-id",
)
register_read_only(
    Probe,
    "service is_away failures since checked_at took_ms error",
    filters="is_away",
    related="service",
    order="service",
)
