"""Models of the audit trail. PostgreSQL triggers refuse updates and deletions of entries."""

from django.db import models

from controlplane.core.actors import ActorType
from controlplane.core.audit import chain

ACTOR_TYPES: tuple[str, ...] = ActorType.__args__  # type: ignore[attr-defined]


class AuditEntry(models.Model):
    """An audited action; `before` and `after` are canonical JSON texts, hashed verbatim."""

    id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    actor_type = models.CharField(max_length=8)
    actor_name = models.CharField(max_length=200)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=200)
    reason = models.TextField(blank=True)
    before = models.TextField(default="null")
    after = models.TextField(default="null")
    request_id = models.CharField(max_length=128, blank=True)
    ip = models.CharField(max_length=64, blank=True)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["target", "-id"], name="audit_by_target"),
            models.Index(fields=["action", "-id"], name="audit_by_action"),
            models.Index(fields=["at"], name="audit_by_time"),
        ]

    def __str__(self) -> str:
        return f"#{self.id} {self.action} {self.target}"


def match_actor(text: str) -> models.Q:
    """Return the condition for an actor's entries, by label (`user:kim`) or name alone (`kim`)."""
    kind, _, name = text.partition(":")
    if name and kind in ACTOR_TYPES:
        return models.Q(actor_type=kind, actor_name=name)
    return models.Q(actor_name=text)


class AuditRound(models.Model):
    """Progress of the verification of the whole trail; a single row.

    `reached_id` is the last row verified in the current round. The last complete round ended with
    row `whole_id` at the time `whole_at`. `problem` describes a failure that was found at the time
    `broken_at`; it is empty while the chain is valid.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    begun_at = models.DateTimeField()
    reached_id = models.BigIntegerField(default=0)
    reached_hash = models.CharField(max_length=64, default=chain.GENESIS)
    whole_id = models.BigIntegerField(default=0)
    whole_hash = models.CharField(max_length=64, blank=True)
    whole_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=200, blank=True)
    broken_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.problem or f"after {self.reached_id}"
