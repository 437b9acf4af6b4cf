"""Models of people and their browser sessions."""

from datetime import datetime
from typing import Any, ClassVar, Literal
from zoneinfo import available_timezones

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from controlplane.core.actors import Actor
from controlplane.core.roles import POWERS_OF, SCOPES_OF, Power, Role


def known_time_zone(name: str) -> None:
    """Raise ValidationError unless the time zone database has a zone with this name."""
    if name not in available_timezones():
        raise ValidationError(f"Unknown time zone: {name}.")


class UserManager(BaseUserManager["User"]):
    def create_user(
        self, username: str, password: str | None = None, role: str = Role.VIEWER, **more: Any
    ) -> "User":
        user = self.model(username=username, role=role, **more)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person who can sign in; `role` alone determines their permissions."""

    username = models.CharField(
        max_length=150, unique=True, validators=[UnicodeUsernameValidator()]
    )
    display_name = models.CharField(max_length=150, blank=True)
    email = models.EmailField(blank=True)
    slack_user_id = models.CharField(max_length=40, blank=True, db_default="")
    role = models.CharField(
        max_length=16, choices=[(role.value, role.value) for role in Role], default=Role.VIEWER
    )
    time_zone = models.CharField(max_length=64, default="UTC", validators=[known_time_zone])
    is_active = models.BooleanField(default=True)
    must_change_password = models.BooleanField(
        default=False, db_default=False, help_text="True while someone else knows the password."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"

    class Meta:
        app_label = "core"
        constraints = [
            models.CheckConstraint(
                condition=Q(role__in=[role.value for role in Role]), name="user_role_known"
            ),
            models.UniqueConstraint(
                fields=["slack_user_id"],
                condition=~Q(slack_user_id=""),
                name="user_one_per_slack_user",
            ),
        ]

    def __str__(self) -> str:
        return self.username

    @property
    def is_admin(self) -> bool:
        return self.is_active and Power.ADMINISTER in POWERS_OF[Role(self.role)]

    @property
    def may_approve(self) -> bool:
        return self.is_active and Power.APPROVE in POWERS_OF[Role(self.role)]

    @property
    def may_operate(self) -> bool:
        return self.is_active and self.role != Role.VIEWER

    def as_actor(
        self,
        *,
        kind: Literal["user", "slack"] = "user",
        session: str = "",
        request_id: str = "",
        ip: str = "",
    ) -> Actor:
        """Return this person as the :class:`Actor` of a write, made in the console or in Slack."""
        role = Role(self.role)
        return Actor(
            type=kind,
            name=self.username,
            user_id=self.pk,
            role=role,
            scopes=SCOPES_OF[role],
            session=session,
            request_id=request_id,
            ip=ip,
        )

    # Django's admin site reads these; only admins enter it.
    is_staff = is_superuser = is_admin

    def has_perm(self, perm: str, obj: object = None) -> bool:
        return self.is_admin

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_admin


class BrowserSessionQuerySet(models.QuerySet["BrowserSession"]):
    def open(self, now: datetime) -> "BrowserSessionQuerySet":
        """Return the sessions of signed-in people that have not ended at `now`."""
        return self.filter(user__isnull=False, expire_date__gt=now)


class BrowserSession(AbstractBaseSession):
    """A browser session; it ends at `expire_date` unless activity extends it.

    `session_key` is the SHA-256, in hex, of the key in the cookie, so a copy of the table gives no
    access.
    """

    session_key = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(
        "core.User", null=True, on_delete=models.CASCADE, related_name="browser_sessions"
    )
    ip = models.CharField(max_length=45, blank=True, default="")
    user_agent = models.CharField(max_length=300, blank=True, default="")
    method = models.CharField(max_length=40, blank=True, default="")
    started_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    objects = BrowserSessionQuerySet.as_manager()  # type: ignore[assignment,misc]

    class Meta:
        app_label = "core"
        verbose_name = "browser session"

    def __str__(self) -> str:
        return f"session of {self.user_id or '-'}"
