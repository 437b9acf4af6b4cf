"""Slack requests that were answered, stored to detect repeats."""

from django.db import models


class AnsweredRequest(models.Model):
    """The digest of a request from Slack that was handled, so that a repeat is ignored.

    It is kept longer than the request's signature is valid.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.digest
