"""Models of teams, of what they own, and of the rules that say who may do what."""

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from controlplane.core.actions import Action, Relation
from controlplane.core.roles import Role

SLUG = r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
MAX_PATTERN_LENGTH = 250


class Team(models.Model):
    """A team; members of its `parent`, and of that team's parents, may do what its members may.

    People in the groups `member_group` and `lead_group` of the identity provider become members
    and leads; an empty name means none. A team without a parent is a root team.
    """

    slug = models.CharField(max_length=40, unique=True, validators=[RegexValidator(SLUG)])
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True, db_default="")
    runbook_url = models.CharField(max_length=500, blank=True, db_default="")
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    member_group = models.CharField(max_length=255, blank=True, db_default="")
    lead_group = models.CharField(max_length=255, blank=True, db_default="")
    created_at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A person's membership of a team; a lead also has the role approver for what the team owns.

    A membership with the source `group` follows the groups of the identity provider.
    """

    class TeamRole(models.TextChoices):
        MEMBER = "member"
        LEAD = "lead"

    class Source(models.TextChoices):
        HAND = "hand"
        GROUP = "group"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey("core.User", on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=8, choices=TeamRole.choices, default=TeamRole.MEMBER)
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.HAND)

    class Meta:
        app_label = "core"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=Q(role__in=["member", "lead"]), name="membership_role_known"
            ),
            models.CheckConstraint(
                condition=Q(source__in=["hand", "group"]), name="membership_source_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.team_id}"


class Ownership(models.Model):
    """A pattern of the resources that a team owns; :mod:`controlplane.core.ownership` reads it."""

    pattern = models.CharField(max_length=MAX_PATTERN_LENGTH, unique=True)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="ownerships")

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.pattern


class AuthorityRule(models.Model):
    """A rule that replaces the default for an action: least role, and relation to the resource.

    `kind` is the kind of the resources (`global`, `stream`), "" for all kinds without their own.
    """

    action = models.CharField(max_length=16, choices=[(one.value, one.value) for one in Action])
    kind = models.CharField(max_length=12, blank=True)
    relation = models.CharField(max_length=8, choices=[(one.value, one.value) for one in Relation])
    role = models.CharField(max_length=16, choices=[(one.value, one.value) for one in Role])

    class Meta:
        app_label = "core"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["action", "kind"], name="authorityrule_once"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.kind or 'anything'}: {self.relation}, {self.role}"
