"""Fixtures of the evaluation tests."""

from dataclasses import replace

import pytest


@pytest.fixture
def configured_targets(settings):
    """Configure a target, to which the routes lead."""
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")
