"""Fixtures: a configured mail server and bot, so that people can be reached; nothing is sent."""

from dataclasses import replace

import pytest


@pytest.fixture(autouse=True)
def _reachable(settings):
    settings.EMAIL = replace(settings.EMAIL, host="127.0.0.1")
    settings.SLACK = replace(settings.SLACK, bot_token="xoxb-1-secret", channel="#ops")
