"""Slack requests that were answered, stored to detect repeats."""

from django.db import models


class AnsweredRequest(models.Model):
    """The digest of a handled request from Slack, kept so that a repeat is recognized."""

    digest = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.digest
