"""Slack by bot token, for who is told."""

from controlplane.notify.delivery.tests.conftest import (  # noqa: F401
    _nothing_configured_by_the_shell,
    by_bot,
    slack,
)
