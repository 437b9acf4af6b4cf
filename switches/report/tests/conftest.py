"""Fixtures of report tests: the running week, and a section that can't be read."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from controlplane.core.clock import db_now
from controlplane.core.page_registry import REPORT_SECTIONS, ReportSection
from controlplane.core.registry import RegisteredFunction
from switches.report import weeks
from switches.report.compose import get_zone
from switches.report.weeks import Week


@pytest.fixture
def running(db: None) -> Week:
    return weeks.week_of(db_now(), get_zone())


@pytest.fixture
def broken() -> Iterator[list[int]]:
    """Register a section that can't be read until the returned list is emptied."""
    failures = [1]

    def part(_start: datetime, _end: datetime, _now: datetime, _is_owned) -> ReportSection:
        if failures:
            raise ValueError("not to be read now")
        return ReportSection("part", "Part", "All is well.", "good")

    REPORT_SECTIONS.register(added := RegisteredFunction(part, 1))
    yield failures
    REPORT_SECTIONS.unregister(added.name)
