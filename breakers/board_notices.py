"""The switchboard's notice of forced breakers."""

from datetime import datetime

from breakers import message_facts
from breakers.models import Override
from breakers.templatetags.breakers import MODES
from controlplane.core.page_registry import BOARD_NOTICES, BoardNotice, NoticeRow

MAX_ROWS = 5


@BOARD_NOTICES.add()
def find_forced_breakers(now: datetime) -> BoardNotice | None:
    """Return the notice of live overrides, the newest first; a reset forces nothing."""
    live = Override.objects.filter(ended_at__isnull=True, expires_at__gt=now)
    found = live.exclude(mode=Override.Mode.RESET).select_related("dependency").order_by("-set_at")
    shown = list(found[: MAX_ROWS + 1])
    if not shown:
        return None
    total = len(shown) if len(shown) <= MAX_ROWS else found.count()
    return BoardNotice(
        heading="1 breaker is forced" if total == 1 else f"{total:,} breakers are forced",
        icon="override",
        rows=tuple(_build_row(one) for one in shown[:MAX_ROWS]),
        total=total,
        path=f"{message_facts.BOARD_PATH}?state=overridden",
    )


def _build_row(override: Override) -> NoticeRow:
    dependency = override.dependency
    path = message_facts.page_path(dependency)
    mode = MODES[override.mode][0].lower()
    return NoticeRow(
        text=f"{dependency.label} {mode}",
        by=override.set_by,
        ends_at=override.expires_at,
        path=path,
        end_label="Remove",
        end_path=f"{path}override/remove/",
    )
