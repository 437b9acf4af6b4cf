"""Fixtures of drill tests: a moment an hour from now, so that commits lie at known times."""

from datetime import datetime, timedelta

import pytest

from controlplane.core.clock import db_now


@pytest.fixture
def now(db: None) -> datetime:
    return db_now() + timedelta(hours=1)
