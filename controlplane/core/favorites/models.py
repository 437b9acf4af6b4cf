"""The table of favorites."""

from django.db import models


class Favorite(models.Model):
    """A favorite of a person: the object `key` of `kind`, such as a switch's id."""

    user = models.ForeignKey("core.User", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20)
    key = models.CharField(max_length=400)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "kind", "key"], name="favorite_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
