"""Fixtures of ramp tests: destinations of messages."""

from typing import Any

import pytest

from controlplane.core.clock import db_now
from controlplane.notify.models.targets import Route, Target
from switches.tests import messages


@pytest.fixture
def slack_configured(settings: Any) -> None:
    messages.configure(settings)


@pytest.fixture
def destination(db: None) -> None:
    """Create a channel to which every message is routed."""
    now = db_now()
    target = Target.objects.create(
        name="all", kind="channel", address="webhook", webhook_url="http://[::1]/", created_at=now
    )
    Route.objects.create(target=target, created_at=now)
