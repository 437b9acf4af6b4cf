"""Answered Slack requests, stored so that none is answered twice."""

from django.db import models


class AnsweredRequest(models.Model):
    """The digest of a signed request, kept for longer than the signature is valid."""

    digest = models.CharField(max_length=64, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.digest
