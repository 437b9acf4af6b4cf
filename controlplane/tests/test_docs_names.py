"""Every metric and event in the code is documented, and nothing else is."""

import re
from pathlib import Path

import pytest

from controlplane.core import exposition, metrics
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.liveness import Loop
from controlplane.core.message_templates import MESSAGE_TEMPLATES
from controlplane.dataplane import metrics as dataplane_metrics
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.relays import make_relay_state
from controlplane.gate import RequestGate

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
_METRIC = re.compile(r"^\| `(switchgear_[a-z_0-9]+)`(?: \*)? \| (\w+) \|", re.MULTILINE)
_EVENT = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| (\w+) \|", re.MULTILINE)
_RULE = re.compile(
    r"^\| `([a-z.-]+)` \| (.+?) \| ([^|]+?) \| (no|\d+–\d+) \| (.*?) ?\|$", re.MULTILINE
)
_TYPE = re.compile(r"^# TYPE (switchgear_\w+) (\w+)$", re.MULTILINE)


@pytest.mark.django_db(transaction=True)
def test_metrics() -> None:
    audit.verify_next_rows(db_now())  # The trail has figures once it was looked at.
    scraped = (
        metrics.exposition(OPENMETRICS)[0],
        metrics.process_exposition(OPENMETRICS, Loop(may_rest_seconds=30))[0],
        dataplane_metrics.render_metrics(State(), OPENMETRICS)[2],
        dataplane_metrics.render_metrics(make_relay_state(), OPENMETRICS)[2],
    )
    scraped_names = {found for text in scraped for found in _TYPE.findall(text.decode())}
    scraped_names |= {(one.name, one.type) for one in exposition.snapshot_metrics(17, 0.4)}
    scraped_names |= {
        (one.name, one.type) for one in RequestGate(nothing, State(), nothing).metrics()
    }

    assert _rows(_METRIC, "metrics.md") == {
        (f"{name}_total" if kind == "counter" else name, kind) for name, kind in scraped_names
    }


async def nothing(*_: object) -> None:
    """A placeholder for a gate's application."""


def test_events() -> None:
    events = {(event, template.severity) for event, template in MESSAGE_TEMPLATES.items()}

    assert _rows(_EVENT, "events.md") == events


def documented(kind: str) -> set[str]:
    """Return the names that a page lists: of `events`, `rules` or `metrics`."""
    row, page = {
        "events": (_EVENT, "events.md"),
        "rules": (_RULE, "data.md"),
        "metrics": (_METRIC, "metrics.md"),
    }[kind]
    return {name for name, *_ in _rows(row, page)}


def _rows(row: re.Pattern[str], page: str) -> set[tuple[str, ...]]:
    found = row.findall((DOCS / page).read_text(encoding="utf-8"))
    assert len(found) == len(set(found))
    return set(found)
