"""Fixtures: a registry with the tests' own kind of job, and notification targets."""

from dataclasses import replace

import pytest

from controlplane.core.jobs import kinds, stepwise
from controlplane.core.jobs.tests.house import Outside, kind


@pytest.fixture
def given(monkeypatch):
    """`given(step, …)` registers a kind of these steps, and `given(work=…)` one of this work."""

    def register(*steps, work=None, **more):
        made = kind(work or stepwise.build_worker(steps), **more)
        kinds.get_kinds()  # The others, as ever.
        monkeypatch.setitem(kinds._registered, made.name, made)
        return made

    return register


@pytest.fixture
def outside():
    return Outside()


@pytest.fixture
def somewhere(settings):
    """A destination that the routes lead to."""
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")
