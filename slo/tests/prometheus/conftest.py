"""A fake Prometheus server that may be queried, and counts."""

import pytest

from .fake_server import fake_prometheus
from .polled_slos import FIRST


@pytest.fixture(autouse=True)
def _own_network(settings):
    settings.PROMETHEUS_ALLOW = ("127.0.0.0/8",)


@pytest.fixture
def counting():
    """Start a server with ten events a minute, of which nine are good."""
    with fake_prometheus() as fake:
        fake.says(
            good=lambda at: 9 * (at // 60 - FIRST + 1000),
            total=lambda at: 10 * (at // 60 - FIRST + 1000),
        )
        yield fake
