"""Tables of the registry: its version, services, channels, dependencies and overrides."""

from collections.abc import Iterable
from typing import ClassVar

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Concat

from breakers import names
from controlplane.core.actors import label_of
from controlplane.core.authority import TeamFilter


class Criticality(models.TextChoices):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Registry(models.Model):
    """The one row that holds the version of the published policies and overrides.

    Every change locks this row first, so that versions are numbered in commit order.
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
    """A service, worker, client, store or external service that others depend on.

    While the service is down, the functions in `loses` fail, those in `keeps` work, and the
    installation is degraded to `level`. `failure_mode`, `fallback` and `impact` describe the effect
    on its callers; `retry` holds the retry settings of a worker.
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

    def for_pair(self, caller: str, callee: str) -> "DependencyQuerySet":
        """Select the dependency of this caller and callee; invalid slugs match nothing."""
        if not (names.is_slug(caller) and names.is_slug(callee)):
            return self.none()
        return self.filter(caller=caller, callee=callee)

    def select_named(self, wanted: Iterable[str]) -> "DependencyQuerySet":
        """Select the dependencies with these names (`core->oracle`); others match nothing."""
        pairs = {pair for name in wanted if (pair := names.split_name(name))}
        return self.alias(
            full_name=Concat(
                "caller", Value(names.ARROW), "callee", output_field=models.TextField()
            )
        ).filter(
            caller__in={caller for caller, _ in pairs},
            callee__in={callee for _, callee in pairs},
            full_name__in=[names.dependency_name(*pair) for pair in pairs],
        )

    def of_team(self, team: TeamFilter) -> "DependencyQuerySet":
        """Select the dependencies that the filter selects."""
        if team.is_all:
            return self
        rows = self.order_by().values_list("pk", "caller", "callee")
        owned = [pk for pk, *pair in rows if team.includes(names.dependency_resource(*pair))]
        return self.filter(pk__in=owned)


class Dependency(models.Model):
    """A caller's dependency on a callee, and the policy of its calls.

    `document` is the policy as services receive it; it is empty if the dependency is known only
    from reports. `version` is the registry version of the last change of policy or override. A
    removed dependency stays as a row, so that services learn of the removal. `trips_total` and
    `fallback_total` are never reset.
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
    """The outage policy (see `breakers.outages`), empty if there is none."""
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
    def resource(self) -> str:
        """The dependency as a resource that a team can own, and the target of its audit rows."""
        return names.dependency_resource(self.caller, self.callee)

    @property
    def label(self) -> str:
        """Return the name as screens show it: `core → oracle`."""
        return names.format_name(self.name)


class Override(models.Model):
    """A mode that an operator or an outage policy forces upon the breakers of a dependency.

    `version` is the registry version that published the override. `ended_why` is `expired`,
    `removed`, `replaced` or `undone`.
    """

    class Mode(models.TextChoices):
        FORCED_OPEN = "forced_open"
        FORCED_CLOSED = "forced_closed"
        DISABLED = "disabled"
        METRICS_ONLY = "metrics_only"
        RESET = "reset"

    dependency = models.ForeignKey(Dependency, on_delete=models.PROTECT, related_name="overrides")
    mode = models.CharField(max_length=13, choices=Mode.choices)
    reason = models.TextField()
    set_by_type = models.CharField(max_length=8)
    set_by_name = models.CharField(max_length=200)
    set_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    version = models.BigIntegerField()
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=210, blank=True)
    ended_why = models.CharField(max_length=8, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dependency"], condition=Q(ended_at__isnull=True), name="override_one_live"
            ),
            models.CheckConstraint(
                condition=Q(
                    mode__in=["forced_open", "forced_closed", "disabled", "metrics_only", "reset"]
                ),
                name="override_mode_known",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=models.F("set_at")), name="override_ends_later"
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=Q(ended_at__isnull=True), name="override_due"
            ),
            models.Index(fields=["set_at"], name="override_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.mode} until {self.expires_at:%Y-%m-%d %H:%M}"

    @property
    def set_by(self) -> str:
        """Label of the actor who set the override, such as `user:kim`."""
        return label_of(self.set_by_type, self.set_by_name)


class Channel(models.Model):
    """A stream with its consumer group, or a socket, over which services communicate."""

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
            )
        ]

    def __str__(self) -> str:
        return self.name
