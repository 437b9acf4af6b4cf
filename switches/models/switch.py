"""Models of switches, episodes, and the publication row that numbers every published change."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, FilteredRelation, Q
from django.db.models.functions import Concat

from controlplane.core.authority import TeamFilter
from controlplane.core.scopes import KEY_PATTERN, MAX_NAME_LENGTH
from controlplane.core.team_filter import split_by_team


class SwitchState(models.TextChoices):
    RELEASED = "released"
    ENGAGED = "engaged"
    RAMPING = "ramping"


class OnExpiry(models.TextChoices):
    HOLD = "hold"
    RAMP = "ramp"
    RELEASE = "release"


class Publication(models.Model):
    """The only row of its table, which holds the version of the published snapshot.

    Every change of a switch locks the row until commit, so versions have no gaps and are in commit
    order.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    epoch = models.UUIDField(default=uuid.uuid4)
    version = models.BigIntegerField(default=0)
    published_at = models.DateTimeField()
    registrations = models.BigIntegerField(default=0, db_default=0)
    """Number of registered switches; a change makes the data plane reload their ids."""
    began_version = models.BigIntegerField(default=0, db_default=0)
    """The first version of this epoch."""

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="publication_one_row")]

    def __str__(self) -> str:
        return f"{self.epoch}.{self.version}"


class SwitchQuerySet(models.QuerySet["Switch"]):
    def with_open_episode(self) -> "SwitchQuerySet":
        """Return switches with their open episode as `open_episode`, in one statement.

        Two statements could pair a state with the wrong version.
        """
        episode = FilteredRelation("episodes", condition=Q(episodes__ended_at__isnull=True))
        switches = self.annotate(open_episode=episode, open_episode_id=F("open_episode__id"))
        return switches.select_related("open_episode")  # type: ignore[misc]  # an annotation

    def containing(self, words: Iterable[str], fields: Collection[str]) -> "SwitchQuerySet":
        """Return switches that have every word in one of these fields, in any case."""
        switches = self
        for word in words:
            matches = {f"{field}__icontains": word for field in fields}
            switches = switches.filter(Q(**matches, _connector=Q.OR))
        return switches

    def stopped(self, **episode: object) -> "SwitchQuerySet":
        """Return switches with an open episode; keyword arguments filter the episode."""
        episodes = Episode.objects.filter(
            switch=models.OuterRef("pk"), ended_at__isnull=True, **episode
        )
        return self.filter(models.Exists(episodes))

    def in_state(self, state: str) -> "SwitchQuerySet":
        if state == SwitchState.RELEASED:
            episodes = Episode.objects.filter(switch=models.OuterRef("pk"), ended_at__isnull=True)
            return self.filter(~models.Exists(episodes))
        if state == SwitchState.RAMPING:
            return self.stopped(allow_percent__gt=0)
        return self.stopped(allow_percent=0)

    def overdue(self) -> "SwitchQuerySet":
        return self.stopped(overdue_at__isnull=False)

    def split_by_team(self, team_filter: TeamFilter) -> "tuple[SwitchQuerySet, int]":
        """Return the switches that the filter selects, and the number of those that it hides."""
        if team_filter.is_all:
            return self, 0
        ids = self.order_by().values_list("pk", flat=True)
        selected, hidden = split_by_team(team_filter, ids, str)
        return self.filter(pk__in=selected), hidden


class Switch(models.Model):
    """A switch with the id `scope:key`; its state is derived from its open episode.

    `version` is the snapshot version of its last change, requested at `requested_at` and committed
    at `committed_at`.
    """

    id = models.CharField(primary_key=True, max_length=131, db_collation="C")
    scope = models.CharField(max_length=MAX_NAME_LENGTH)
    key = models.CharField(max_length=120, db_collation="C")
    owner = models.CharField(max_length=120, blank=True)
    description = models.TextField(blank=True)
    runbook_url = models.URLField(blank=True)
    last_proven_at = models.DateTimeField(null=True, blank=True)
    version = models.BigIntegerField(default=0)
    requested_at = models.DateTimeField(null=True, blank=True)
    committed_at = models.DateTimeField(null=True, blank=True)
    registered_at = models.DateTimeField()

    objects: ClassVar[SwitchQuerySet] = SwitchQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name_plural = "switches"
        constraints = [
            models.CheckConstraint(
                condition=Q(id=Concat("scope", models.Value(":"), "key")),
                name="switch_id_is_scope_and_key",
            ),
            models.CheckConstraint(
                condition=Q(scope__regex=f"^[a-z]{{1,{MAX_NAME_LENGTH}}}$"),
                name="switch_scope_plain",
            ),
            models.CheckConstraint(
                condition=Q(key__regex=f"^{KEY_PATTERN}$"), name="switch_key_plain"
            ),
            models.CheckConstraint(
                condition=~Q(scope="global") | Q(key="all"), name="switch_global_is_all"
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def episode(self) -> "Episode | None":
        """Return the open episode, or None while released."""
        if self._state.adding:
            return None
        if not hasattr(self, "open_episode_id"):
            return self.episodes.filter(ended_at__isnull=True).first()
        found: Episode | None = getattr(self, "open_episode", None)
        return found

    @property
    def state(self) -> SwitchState:
        episode = self.episode
        return SwitchState.RELEASED if episode is None else episode.state


class Episode(models.Model):
    """One engagement of a switch, from engage to full release.

    `allow_percent` is the allowed share of traffic: 0 is engaged, above 0 is ramping, including
    100 during a ramp's last step. `salt` is fixed so that a targeting key stays admitted as the
    share grows. `broke_glass` records overridden rules and the reason.
    """

    class End(models.TextChoices):
        RELEASED = "released"
        UNDONE = "undone"
        EXPIRED = "expired"

    switch = models.ForeignKey(Switch, on_delete=models.PROTECT, related_name="episodes")
    reason = models.TextField()
    evidence = models.JSONField(null=True, blank=True)
    engaged_by_type = models.CharField(max_length=8)
    engaged_by_name = models.CharField(max_length=200)
    engaged_by = models.ForeignKey(
        "core.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    engaged_by_identity = models.CharField(max_length=220)
    engaged_at = models.DateTimeField()
    engaged_version = models.BigIntegerField()
    expires_at = models.DateTimeField(null=True, blank=True)
    permanent = models.BooleanField(default=False)
    on_expiry = models.CharField(max_length=8, choices=OnExpiry.choices)
    allow_percent = models.DecimalField(max_digits=5, decimal_places=2, default=0)
    salt = models.CharField(max_length=32)
    overdue_at = models.DateTimeField(null=True, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=200, blank=True)
    day_reminder_for = models.DateTimeField(null=True, blank=True)
    """The end (:attr:`ends_at`) that the last day reminder was about."""
    hour_reminder_for = models.DateTimeField(null=True, blank=True)
    reconfirm_due_at = models.DateTimeField(null=True, blank=True)
    reconfirmed_at = models.DateTimeField(null=True, blank=True)
    reconfirmed_by = models.CharField(max_length=200, blank=True, db_default="")
    broke_glass = models.JSONField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=200, blank=True)
    ended_how = models.CharField(max_length=8, choices=End.choices, blank=True)
    justification = models.TextField(blank=True)

    orders: Sequence[models.Model]
    """Its emergency orders, set by :func:`switches.emergency.presentation.load_orders`."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["switch"], condition=Q(ended_at__isnull=True), name="episode_one_open"
            ),
            models.CheckConstraint(
                condition=Q(permanent=True, expires_at__isnull=True)
                | Q(permanent=False, expires_at__isnull=False),
                name="episode_expires_or_permanent",
            ),
            models.CheckConstraint(
                condition=Q(allow_percent__gte=0, allow_percent__lte=100),
                name="episode_percent_in_range",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__isnull=True) | Q(expires_at__gt=F("engaged_at")),
                name="episode_expires_after_engage",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_how="")
                | (Q(ended_at__isnull=False) & ~Q(ended_how="")),
                name="episode_end_is_told",
            ),
            models.CheckConstraint(
                condition=Q(on_expiry__in=OnExpiry.values), name="episode_on_expiry_known"
            ),
        ]
        indexes = [
            models.Index(fields=["switch", "-id"], name="episode_newest_first"),
            models.Index(
                fields=["expires_at"], condition=Q(ended_at__isnull=True), name="episode_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.switch_id} since {self.engaged_at:%Y-%m-%d %H:%M}"

    @property
    def state(self) -> SwitchState:
        return SwitchState.RAMPING if self.allow_percent else SwitchState.ENGAGED

    @property
    def final_state(self) -> SwitchState:
        """Return `released` for an ended episode, else its state."""
        return self.state if self.ended_at is None else SwitchState.RELEASED

    @property
    def ends_at(self) -> datetime | None:
        """Return the expiry, or the re-confirmation deadline of a permanent episode."""
        return self.reconfirm_due_at if self.permanent else self.expires_at

    @property
    def engager(self) -> dict[str, str]:
        return {"type": self.engaged_by_type, "name": self.engaged_by_name}

    @property
    def overdue(self) -> bool:
        return self.ended_at is None and self.overdue_at is not None
