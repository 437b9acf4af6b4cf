"""Tables of the registry: services, dependencies, channels, and its version."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from breakers import names


class Criticality(models.TextChoices):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Registry(models.Model):
    """The version of the published policies and overrides, in one row.

    Every change locks it first, so versions are in commit order.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    version = models.BigIntegerField(default=0)
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "registry"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="registry_one_row")]

    def __str__(self) -> str:
        return f"version {self.version}"


class Service(models.Model):
    """A service, a worker, a client, a store or somebody else's service that others depend on.

    `loses` names the functions that are gone while it is away, `keeps` those that go on. `level` is
    how far the installation has degraded then. `probe_url` (`tcp://host:port`, `https://…`) is
    asked whether it answers. `failure_mode`, `fallback` and `impact` say what its loss does to
    those that use it; `retry` is how a worker tries again.
    """

    class Kind(models.TextChoices):
        SERVICE = "service"
        WORKER = "worker"
        CLIENT = "client"
        STORE = "store"
        EXTERNAL = "external"

    slug = models.CharField(primary_key=True, max_length=names.MAX_LENGTH, db_collation="C")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SERVICE)
    owner = models.CharField(max_length=120, blank=True)
    runbook_url = models.URLField(max_length=500, blank=True)
    notes = models.TextField(blank=True)
    level = models.PositiveSmallIntegerField(default=1)
    loses = models.JSONField(default=list, blank=True)
    keeps = models.JSONField(default=list, blank=True)
    used_by = models.JSONField(default=list, blank=True)
    failure_mode = models.TextField(blank=True)
    fallback = models.TextField(blank=True)
    impact = models.TextField(blank=True)
    retry = models.JSONField(default=dict, blank=True)
    probe_url = models.CharField(max_length=500, blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(slug__regex=f"^{names.SLUG}$"), name="service_slug_plain"
            ),
            models.CheckConstraint(condition=Q(level__in=[1, 2, 3]), name="service_level_known"),
            models.CheckConstraint(
                condition=Q(kind__in=["service", "worker", "client", "store", "external"]),
                name="service_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class DependencyQuerySet(models.QuerySet["Dependency"]):
    def registered(self) -> "DependencyQuerySet":
        return self.filter(removed_at__isnull=True)

    def named(self, caller: str, callee: str) -> "DependencyQuerySet":
        return self.filter(caller=caller, callee=callee)


class Dependency(models.Model):
    """A caller that depends on a callee, and the policy of its calls.

    `document` is the policy as `/config` tells it (see `breakers.policies`). `version` is the
    registry's at the last change of policy or override. One with an empty document is known only
    because an instance reported its breaker, and goes by the defaults. One that was removed stays
    as a row, so that services learn of it. `trips_total` and `fallback_total` count openings and
    fallbacks over all instances, ever: they outlive transitions and minutes.
    """

    caller = models.CharField(max_length=names.MAX_LENGTH, db_collation="C")
    callee = models.CharField(max_length=names.MAX_LENGTH, db_collation="C")
    protocol = models.CharField(max_length=40, blank=True)
    criticality = models.CharField(
        max_length=10, choices=Criticality.choices, default=Criticality.MEDIUM
    )
    mode = models.CharField(max_length=5, default="sync")
    owner = models.CharField(max_length=120, blank=True)
    runbook_url = models.URLField(max_length=500, blank=True)
    notes = models.TextField(blank=True)
    managed_by = models.CharField(max_length=60, default="caller", blank=True)
    document = models.JSONField(default=dict)
    on_outage = models.JSONField(default=dict, blank=True)
    """Action on an outage of the callee; see `breakers.outages`. Empty means none."""
    version = models.BigIntegerField(default=0)
    trips_total = models.BigIntegerField(default=0, db_default=0)
    fallback_total = models.BigIntegerField(default=0, db_default=0)
    registered_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[DependencyQuerySet] = DependencyQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name_plural = "dependencies"
        constraints = [
            models.UniqueConstraint(fields=["caller", "callee"], name="dependency_once"),
            models.CheckConstraint(
                condition=Q(caller__regex=f"^{names.SLUG}$", callee__regex=f"^{names.SLUG}$"),
                name="dependency_slugs_plain",
            ),
            models.CheckConstraint(
                condition=Q(criticality__in=Criticality.values), name="dependency_criticality_known"
            ),
            models.CheckConstraint(
                condition=Q(mode__in=["sync", "async"]), name="dependency_mode_known"
            ),
        ]
        indexes = [
            models.Index(fields=["callee"], name="dependency_by_callee"),
            models.Index(fields=["version"], name="dependency_by_version"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return names.dependency_name(self.caller, self.callee)

    @property
    def is_discovered(self) -> bool:
        """True if it is known only by reports and was never registered."""
        return not self.document


class Channel(models.Model):
    """A way that events or live updates take: a stream with its consumer group, or a socket."""

    class Kind(models.TextChoices):
        STREAM = "stream"
        REALTIME = "realtime"

    name = models.CharField(primary_key=True, max_length=200, db_collation="C")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    stream = models.CharField(max_length=200)
    producer = models.CharField(max_length=60)
    consumer = models.CharField(max_length=60, blank=True)
    group = models.CharField(max_length=120, blank=True)
    protocol = models.CharField(max_length=60)
    purpose = models.CharField(max_length=200, blank=True)
    reach = models.CharField(max_length=200, blank=True)
    failure_mode = models.TextField(blank=True)
    fallback = models.TextField(blank=True)
    impact = models.TextField(blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["stream", "realtime"]), name="channel_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name
