"""Template context of the first steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from controlplane.core.first_steps import services
from controlplane.core.first_steps.services import DONE, StepProgress
from controlplane.core.page_responses import PersonRequest


@dataclass(frozen=True)
class FirstStepsView:
    """The steps as shown at `now`; `origin` is the console's address for the snippets.

    `is_over` is True if the switchboard doesn't show the steps, `on_page` on the steps' own page.
    """

    steps: Sequence[StepProgress]
    now: datetime
    origin: str
    is_over: bool
    on_page: bool

    @property
    def done(self) -> int:
        return sum(one.state == DONE for one in self.steps)


def read_for_board(request: PersonRequest, head: int, now: datetime) -> FirstStepsView | None:
    """Return the steps for the switchboard, None once they are done or hidden.

    `head` is the id of the last audit row.
    """
    if services.read_state().is_over:
        return None
    view = _read_view(request, now, is_over=False, on_page=False, head=head)
    return None if view.is_over else view


def read_for_page(request: PersonRequest, now: datetime, *, on_page: bool = True) -> FirstStepsView:
    """Return the steps, also if they are done or hidden; store that they are done."""
    return _read_view(request, now, is_over=services.read_state().is_over, on_page=on_page)


def _read_view(
    request: PersonRequest,
    now: datetime,
    *,
    is_over: bool,
    on_page: bool,
    head: int | None = None,
) -> FirstStepsView:
    steps = services.read_progress(now, head)
    is_over = services.record_completion(steps, now) or is_over
    origin = settings.PUBLIC_URL.rstrip("/") or request.build_absolute_uri("/")[:-1]
    return FirstStepsView(steps, now, origin, is_over, on_page)
