"""The table of entries that the shipped configuration added."""

from django.db import models


class SampleEntry(models.Model):
    """An entry, such as a dependency, that was loaded from the shipped configuration.

    It is a sample as long as its own `changed_at` equals `loaded_at`: nobody has changed it since.
    """

    kind = models.CharField(max_length=24)
    name = models.CharField(max_length=200, db_collation="C")
    loaded_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "sample entries"
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="sample_entry_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
