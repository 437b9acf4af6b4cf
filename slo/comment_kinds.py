"""Comments on alerts."""

from controlplane.core.comments.services import COMMENT_KINDS, CommentedObject, CommentKind
from controlplane.core.errors import NotFound
from slo.alerts import notifications
from slo.models import Alert
from slo.objectives.permissions import SCOPE

KIND = "alert"
MAX_DIGITS = 18


def find_alert(key: str) -> CommentedObject:
    is_number = key.isascii() and key.isdigit() and len(key) <= MAX_DIGITS
    alert = Alert.objects.filter(pk=key).first() if is_number else None
    if alert is None:
        raise NotFound(f"There is no alert {key}.")
    return CommentedObject(
        f"alert {alert.pk}",
        notifications.alert_path(alert),
        notifications.alert_subject(alert),
        "slo",
        alert.subject,
        resource=alert.resource,
    )


COMMENT_KINDS.register(CommentKind(KIND, SCOPE, find_alert))
