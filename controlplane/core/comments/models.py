"""The table of comments."""

from django.db import models


class Comment(models.Model):
    """A comment on the object `key` of `kind`: an alert's or an episode's id."""

    kind = models.CharField(max_length=20)
    key = models.CharField(max_length=40)
    text = models.TextField()
    author = models.CharField(max_length=200)
    written_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["kind", "key", "id"], name="comment_by_object")]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: {self.text[:40]}"
