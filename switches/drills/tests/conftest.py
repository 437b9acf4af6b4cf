"""Fixtures of drill tests, whose clock is an hour ahead, so that commits lie at known times."""

from datetime import datetime, timedelta

import pytest

from controlplane.core.clock import db_now


@pytest.fixture
def now(db: None) -> datetime:
    return db_now() + timedelta(hours=1)
