"""Model of emergency orders, which data planes accept without the database and store later."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from switches.models.switch import Episode


class EmergencyOrder(models.Model):
    """An emergency order, and what became of it once the database could be reached.

    Data planes insert the columns of the order itself (`id` to `relay`); the others have defaults
    in the database. `order_id` is the order that a withdrawal withdraws. `planes` names the data
    planes that had the order. `relay` is the public key of the relay that accepted the order, "" if
    that was a data plane. A refused order blocks its switch until `blocks_until`. A closed
    order has left the data planes in the snapshot version `closed_version`.
    """

    class Action(models.TextChoices):
        ENGAGE = "engage"
        WITHDRAW = "withdraw"

    class State(models.TextChoices):
        RECEIVED = "received"
        RECONCILED = "reconciled"
        ATTACHED = "attached"
        REFUSED = "refused"
        WITHDRAWN = "withdrawn"
        LATE_WITHDRAWAL = "late_withdrawal"

    id = models.UUIDField(primary_key=True)
    action = models.CharField(max_length=8, choices=Action.choices)
    switch = models.TextField(db_collation="C")
    order_id = models.UUIDField(null=True, blank=True)
    reason = models.TextField()
    expires_in = models.TextField(null=True, blank=True)  # noqa: DJ001 - null in the order, too
    by_type = models.TextField()
    by_name = models.TextField()
    by_id = models.BigIntegerField()
    at = models.DateTimeField()
    plane = models.TextField()
    relay = models.TextField(default="", db_default="", blank=True)
    received_at = models.DateTimeField(db_default=Now())
    planes = ArrayField(models.TextField(), default=list, db_default=[], blank=True)
    state = models.CharField(
        max_length=15, choices=State.choices, default=State.RECEIVED, db_default=State.RECEIVED
    )
    refusal = models.TextField(default="", db_default="", blank=True)
    blocks_until = models.DateTimeField(null=True, blank=True)
    episode = models.ForeignKey(
        Episode, on_delete=models.PROTECT, null=True, blank=True, related_name="emergency_orders"
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_version = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(action__in=["engage", "withdraw"]), name="emergency_order_action_known"
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, closed_version__isnull=True)
                | Q(closed_at__isnull=False, closed_version__isnull=False),
                name="emergency_order_closed_in_version",
            ),
            models.CheckConstraint(
                condition=~Q(state="received") | Q(closed_at__isnull=True),
                name="emergency_order_received_is_open",
            ),
        ]
        indexes = [
            models.Index(
                fields=["at", "id"],
                condition=Q(closed_at__isnull=True),
                name="emergency_order_open",
            ),
            models.Index(fields=["closed_at"], name="emergency_order_closed"),
            models.Index(
                fields=["order_id"],
                condition=Q(order_id__isnull=False),
                name="emergency_order_withdraws",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.switch} ({self.id})"

    @property
    def place(self) -> str:
        """The data plane or relay that accepted the order, such as `relay eu-1`, for people."""
        return f"{'relay' if self.relay else 'data plane'} {self.plane}"
