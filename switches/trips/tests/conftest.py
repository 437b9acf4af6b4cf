"""Fixtures of trip tests: a monitor's token, and Slack as a destination."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.core.http.tests.callers import Api, with_token


@pytest.fixture
def machine(db: None) -> Api:
    return with_token("switches:trip")


@pytest.fixture
def slack_configured(settings: Any) -> None:
    settings.SLACK = replace(settings.SLACK, bot_token="xoxb-1-secret", channel="#ops")
