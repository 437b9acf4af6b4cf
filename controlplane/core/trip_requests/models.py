"""The table of trip requests."""

from django.db import models


class TripRequest(models.Model):
    """Another app's request to trip a switch, or report that the cause is over; unique by `key`.

    `tripped` and `why` are the decision, made at `decided_at`.
    """

    key = models.CharField(max_length=200, unique=True)
    switch = models.CharField(max_length=131)
    source = models.CharField(max_length=120)
    fingerprint = models.CharField(max_length=200)
    reason = models.TextField()
    evidence = models.JSONField(default=dict)
    expires_in = models.CharField(max_length=20, blank=True)
    is_over = models.BooleanField(default=False)
    requested_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    tripped = models.BooleanField(null=True, blank=True)
    why = models.TextField(blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["requested_at"],
                condition=models.Q(decided_at__isnull=True),
                name="trip_request_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} → {self.switch}"
