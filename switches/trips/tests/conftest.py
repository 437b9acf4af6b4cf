"""Fixtures of trip tests: a monitor's token, and Slack as a destination."""

from dataclasses import replace

import pytest
from pytest_django.fixtures import SettingsWrapper

from controlplane.core.http.tests.callers import Api, with_token


@pytest.fixture
def machine(db: None) -> Api:
    return with_token("switches:trip")


@pytest.fixture
def slack_configured(settings: SettingsWrapper) -> None:
    settings.SLACK = replace(settings.SLACK, bot_token="xoxb-1-secret", channel="#ops")
