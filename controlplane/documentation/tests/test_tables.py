"""Generated tables of pages equal the registries; `make docs-tables` writes them."""

import os

import pytest

from controlplane.core import exposition, metrics
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.liveness import Loop
from controlplane.core.message_templates import MESSAGE_TEMPLATES
from controlplane.dataplane import metrics as dataplane_metrics
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.relays import make_relay_state
from controlplane.documentation.tables import MetricSource, build_tables, replace_tables
from controlplane.gate import RequestGate

from .pages import ROOT

PAGES = sorted(ROOT.glob("docs/**/*.md"))


async def nothing(*_: object) -> None:
    """A placeholder for a gate's application."""


@pytest.fixture
def source(transactional_db: None) -> MetricSource:
    """Return the metric families of all processes, each once."""
    now = db_now()
    audit.verify_next_rows(now)  # The trail has figures once it was looked at.
    console = [
        *metrics.collect_console(),
        *exposition.snapshot_metrics(17, 0.4),
        *RequestGate(nothing, State(), nothing).metrics(),
        *dataplane_metrics.process_metrics(State()),
    ]
    others = [
        *metrics.collect_process(Loop(may_rest_seconds=30)),
        *dataplane_metrics.StateCollector(State()).collect(),
        *dataplane_metrics.StateCollector(make_relay_state()).collect(),
    ]
    read = {family.name for r in metrics.DATABASE_METRICS.functions() for family in r(now)}
    families = {family.name: family for family in reversed([*console, *others])}
    return MetricSource(
        sorted(families.values(), key=lambda family: family.name),
        frozenset({family.name for family in console} - read),
    )


def test_the_tables_of_all_pages_are_those_of_the_registries(source: MetricSource) -> None:
    tables = build_tables(source)

    outdated = {}
    for page in PAGES:
        present = page.read_text(encoding="utf-8")
        generated = replace_tables(present, tables)
        if generated != present and "UPDATE_DOCS" in os.environ:
            page.write_text(generated, encoding="utf-8")
        elif generated != present:
            outdated[page] = generated

    assert {page.name for page in outdated} == set(), "run `make docs-tables`"


def test_every_event_says_when_it_is_sent() -> None:
    assert [event for event, each in MESSAGE_TEMPLATES.items() if not each.when] == []


def test_a_table_between_markers_is_replaced() -> None:
    page = "a\n\n<!-- generated: x p q -->\n\nold\n\n<!-- end -->\n\nb\n"

    written = replace_tables(page, {"x": lambda arguments: ["| new |", *arguments]})

    assert written == "a\n\n<!-- generated: x p q -->\n\n| new |\np\nq\n\n<!-- end -->\n\nb\n"
    assert replace_tables(written, {"x": lambda _: ["| new |", "p", "q"]}) == written


def test_a_marker_with_an_unknown_table_fails() -> None:
    with pytest.raises(KeyError):
        replace_tables("<!-- generated: y -->\n\n<!-- end -->", {})
