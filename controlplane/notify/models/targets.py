"""Targets of notifications, and routes to them."""

from cryptography.fernet import InvalidToken
from django.db import models
from django.db.models import Q

from controlplane.accounts.models.people import known_time_zone
from controlplane.core import encryption

SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with


class Target(models.Model):
    """A recipient of notifications.

    A `person` is reached by Slack and e-mail. A `channel` has an `address`: the key of a transport,
    and optionally a parameter (`slack:#ops`, `webhook`). An `on_call` target is a rotation, which
    stands for its member on duty. An `escalation` is a series of steps, named after its severity.
    `transport_settings` is JSON that may contain secrets.
    """

    class Kind(models.TextChoices):
        PERSON = "person"
        CHANNEL = "channel"
        ON_CALL = "on_call"
        ESCALATION = "escalation"

    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    description = models.CharField(max_length=300, blank=True)
    user = models.ForeignKey(
        "core.User", on_delete=models.PROTECT, null=True, blank=True, related_name="targets"
    )
    email = models.EmailField(blank=True)
    slack_user_id = models.CharField(max_length=40, blank=True)
    address = models.CharField(max_length=200, blank=True)
    webhook_url = encryption.SealedField(
        max_length=4000, blank=True, purpose=encryption.WEBHOOK_URLS
    )
    webhook_secret = models.CharField(max_length=200, blank=True)
    transport_settings = encryption.SealedField(
        max_length=4000,
        blank=True,
        default="",
        db_default="",
        purpose=encryption.TRANSPORT_SETTINGS,
    )
    rotation_days = models.PositiveSmallIntegerField(null=True, blank=True)
    rotation_starts_at = models.DateTimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC", validators=[known_time_zone])
    created_at = models.DateTimeField()

    class Meta:
        app_label = "core"
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["person", "channel", "on_call", "escalation"]),
                name="target_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def signing_secret(self) -> str:
        """The signing secret of a webhook; empty if it is missing or can't be decrypted."""
        if not self.webhook_secret or self.webhook_secret.startswith(SECRET_PREFIX):
            return self.webhook_secret  # Stored in plain text by an earlier release.
        try:
            return encryption.decrypt(self.webhook_secret, encryption.WEBHOOKS)
        except InvalidToken:
            return ""

    def sign_with(self, secret: str) -> None:
        self.webhook_secret = encryption.encrypt(secret, encryption.WEBHOOKS)


class OnCallMember(models.Model):
    """A person in a rotation; `position` is the place in the order, from 0."""

    rotation = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="members")
    position = models.PositiveSmallIntegerField()
    person = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="rotations")

    class Meta:
        app_label = "core"
        constraints = [
            models.UniqueConstraint(fields=["rotation", "position"], name="on_call_one_a_turn"),
        ]

    def __str__(self) -> str:
        return f"{self.rotation_id} {self.position}"


class EscalationStep(models.Model):
    """A step of an escalation: the target to notify if nobody has acknowledged in time.

    `after_minutes` counts from the opening of the escalation.
    """

    escalation = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveSmallIntegerField()
    after_minutes = models.PositiveIntegerField()
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="used_in_steps")

    class Meta:
        app_label = "core"
        constraints = [
            models.UniqueConstraint(fields=["escalation", "position"], name="step_one_a_position"),
        ]

    def __str__(self) -> str:
        return f"{self.escalation_id} +{self.after_minutes} min"


class Route(models.Model):
    """A rule that sends matching events to a target.

    `event` is a pattern such as `switch.*`; an empty scope or severity matches any.
    """

    event = models.CharField(max_length=64, default="*")
    scope = models.CharField(max_length=10, blank=True)
    severity = models.CharField(max_length=8, blank=True)
    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="routes")
    created_at = models.DateTimeField()

    class Meta:
        app_label = "core"
        constraints = [
            models.UniqueConstraint(
                fields=["event", "scope", "severity", "target"], name="route_once"
            ),
            models.CheckConstraint(
                condition=Q(severity__in=["", "critical", "warning", "info"]),
                name="route_severity_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} → {self.target_id}"
