"""Model of safety rules."""

from django.db import models
from django.db.models import Q


class Rule(models.Model):
    """A safety rule across switches; `switches` lists ids and patterns such as `segment:*`."""

    class Kind(models.TextChoices):
        AT_MOST = "at_most"
        EXCLUSIVE = "exclusive"
        AT_LEAST_ONE = "at_least_one"
        PROTECTED = "protected"

    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    switches = models.JSONField()
    n = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["at_most", "exclusive", "at_least_one", "protected"]),
                name="rule_kind_known",
            ),
            models.CheckConstraint(
                condition=Q(kind="at_most", n__isnull=False)
                | (~Q(kind="at_most") & Q(n__isnull=True)),
                name="rule_n_for_at_most",
            ),
        ]

    def __str__(self) -> str:
        return self.name
