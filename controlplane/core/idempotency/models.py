"""The table of idempotency keys."""

from django.db import models


class IdempotencyKey(models.Model):
    """The first 2xx response to a request, by actor, method, path and key; kept for 24 hours."""

    actor = models.CharField(max_length=220)
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=400)
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["actor", "method", "path", "key"], name="idempotency_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.key}"
