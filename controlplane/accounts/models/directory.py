"""Models of the users and groups that an identity provider provisions by SCIM."""

from django.db import models


class DirectoryUser(models.Model):
    """A user that the identity provider provisioned; `attributes` are those stored as received."""

    user = models.OneToOneField(
        "core.User", on_delete=models.PROTECT, primary_key=True, related_name="directory"
    )
    external_id = models.CharField(max_length=255, blank=True)
    attributes = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return f"directory user {self.user_id}"


class DirectoryGroup(models.Model):
    """A group of the identity provider, and its members."""

    name = models.CharField(max_length=255, unique=True)
    external_id = models.CharField(max_length=255, blank=True)
    members = models.ManyToManyField("core.User", related_name="directory_groups")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.name
