"""An hour from now, so that what a drill commits lies at the very moment a test says."""

from datetime import datetime, timedelta

import pytest

from controlplane.core.clock import db_now


@pytest.fixture
def now(db: None) -> datetime:
    return db_now() + timedelta(hours=1)
