"""The parts of a benchmark run; each starts the servers it needs, measures, and stops them."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import (
    breaker_reports,
    coldstart,
    dead_letters,
    emergency,
    fanout,
    fixtures,
    guarded_calls,
    idle_processes,
    lists,
    many_switches,
    page_watch,
    pages,
    propagation,
    ramps,
    relays,
    rows,
    sizes,
    slo_evaluation,
    slo_ingest,
    switch_checks,
    teams,
    websocket_client,
    wrk,
)
from .fanout import FanoutCost
from .servers import HOLDER, PLANE, WEB, free_port, running
from .table import ResultTable
from .wrk import LoadFigures

ENGAGED = 100
RELAYED = 1000
POLL_P99_MS = 100.0
STREAM_P99_MS = 25.0
REACH_P99_MS = {"held": 150.0, "streams": 250.0}
"""Target of one change to all, by kind of listener."""
PUBLICATION_P99_MS = 50.0
PUBLICATIONS = 50
LIVE_P99_MS = {500: 250.0, 2000: 1000.0}
"""Target by number of sockets."""


@dataclass(frozen=True)
class Setting:
    """Settings shared by all parts of a run, such as the servers' CPU core and the load's sizes."""

    core: int
    loop: str
    token: str
    folder: Path
    rounds: int
    seconds: int
    engages: int
    listeners: int
    changes: int
    newcomers: int
    ramps: int
    reporters: int
    reporting: int
    letters: int
    audited: int
    orders: int
    relays: int


def measure_rows(setting: Setting, table: ResultTable) -> None:
    """Measure the requests of :mod:`rows`: requests per second, beside a bare ASGI application."""
    fixtures.create_switches(ENGAGED, ENGAGED)
    with ExitStack() as stack:
        served = rows.serve(stack, setting.core, setting.loop, setting.token, setting.folder)
        for row in served:
            rows.verify(row)
            wrk.run_round(row, 1)  # Warms connections, caches and branch predictors.
        results: list[list[LoadFigures]] = [[] for _ in served]
        for _ in range(setting.rounds):
            for row, figures in zip(served, results, strict=True):
                figures.append(wrk.run_round(row, setting.seconds))
    table.print_requests(served, [wrk.median_figures(figures) for figures in results])


def measure_commits(setting: Setting, table: ResultTable) -> None:
    """Measure the latency from an operator's commit to one client, by poll and by stream."""
    fixtures.create_switches(ENGAGED, ENGAGED)
    token = setting.token
    keys = [f"told-{n}" for n in range(setting.engages)]
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        polled = propagation.measure(plane, token, keys, "polls")
        fixtures.create_switches(ENGAGED, ENGAGED)
        streamed = propagation.measure(plane, token, keys, "streams")
    table.print_commit("a poll", polled, POLL_P99_MS)
    table.print_commit("a stream", streamed, STREAM_P99_MS)


def measure_listeners(kind: str, called: str, setting: Setting, table: ResultTable) -> None:
    """Measure how one change reaches thousands of held polls or event streams."""
    fixtures.create_switches(ENGAGED, ENGAGED)
    token, size = setting.token, (setting.listeners, setting.changes)
    spreads: list[FanoutCost] = []
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        answers = rows.record(plane, token, setting.folder)
        name = f"{setting.listeners:,} {called}, {setting.changes} engagements"
        ring = fanout.engage_switch(kind)
        spreads.append(fanout.measure(name, plane, kind, token, *size, ring))
    with running(HOLDER, core=setting.core, loop=setting.loop, answers=answers) as holder:
        ring = fanout.ring_holder(holder)
        name = f"bare ASGI, the same {called}"
        spreads.insert(0, fanout.measure(name, holder, kind, token, *size, ring))
    table.print_fanout(spreads, REACH_P99_MS[kind])


def measure_relays(setting: Setting, table: ResultTable) -> None:
    """Measure what hundreds of relays cost the data plane that they follow."""
    fixtures.create_switches(RELAYED, RELAYED)
    token = fixtures.make_token(*relays.SCOPES)
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        ring = fanout.engage_switch("relayed")
        costs = relays.measure(plane, token, setting.relays, setting.changes, ring)
    table.print_relays(costs, relays.measure_bundles(RELAYED))


def measure_sockets(setting: Setting, table: ResultTable) -> None:
    """Measure how one change reaches hundreds and thousands of WebSockets."""
    for count, wanted in LIVE_P99_MS.items():
        fixtures.create_switches(ENGAGED, ENGAGED)
        tokens = ",".join(
            fixtures.make_token()
            for _ in range(-(-count // websocket_client.MAX_SOCKETS_PER_TOKEN))
        )
        name = f"{count:,} sockets, {setting.changes} engagements"
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            ring = fanout.engage_switch(f"live-{count}")
            results = fanout.measure(name, web, "sockets", tokens, count, setting.changes, ring)
        table.print_fanout([results], wanted)


def measure_cold_start(setting: Setting, table: ResultTable) -> None:
    """Measure the web process while thousands of services start at once."""
    fixtures.create_switches(ENGAGED, ENGAGED)
    with running(WEB, core=setting.core, loop=setting.loop) as web:
        person = page_watch.Browser.signed_in(web.port)
        results = coldstart.measure(web, setting.token, setting.newcomers, ENGAGED, person)
    table.print_cold_start(results)


def measure_many_switches(setting: Setting, table: ResultTable) -> None:
    """Measure polls and changes with ten thousand switches."""
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        results = many_switches.measure(
            plane, setting.token, setting.rounds, setting.seconds, PUBLICATIONS
        )
    table.print_many_switches(results)
    table.print_commit("200 whole, 1,000 engaged", results.known, PUBLICATION_P99_MS)
    table.print_commit("200 whole, new switches", results.new, PUBLICATION_P99_MS)


def measure_reports(setting: Setting, table: ResultTable) -> None:
    """Measure the data plane while a fleet reports its breakers."""
    token = fixtures.make_token("report:write")
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        table.print_reports(
            breaker_reports.measure(plane, token, setting.reporters, setting.reporting)
        )


def measure_ramps(setting: Setting, table: ResultTable) -> None:
    """Measure the periodic ramp task over a thousand ramps, in this process, without any server."""
    with _on_both_cores(setting):
        table.print_ramps(ramps.measure(setting.ramps))


def measure_evaluation(setting: Setting, table: ResultTable) -> None:
    """Measure the evaluation of 1,000 and of 10,000 SLOs, in this process, without any server."""
    with _on_both_cores(setting):
        table.print_evaluation(slo_evaluation.measure())


@contextmanager
def _on_both_cores(setting: Setting) -> Iterator[None]:
    load_core = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {setting.core, *load_core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, load_core)


def measure_points(setting: Setting, table: ResultTable) -> None:
    """Measure the ingestion of points (pushed counters) for a thousand SLOs."""
    slo_ingest.create_slos()
    token = fixtures.make_token("slo:write")
    try:
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            table.print_points(slo_ingest.measure(web, token, setting.rounds * setting.seconds))
    finally:
        fixtures.delete_slos()


def measure_dead_letters(setting: Setting, table: ResultTable) -> None:
    """Measure the pages and the API of a stream of a hundred thousand dead letters."""
    token = fixtures.make_token("dlq:read")
    dead_letters.write_letters(setting.letters)
    try:
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            person = page_watch.Browser.signed_in(web.port)
            table.print_dead_letters(dead_letters.measure(web, token, person, setting.letters))
    finally:
        dead_letters.clear()


def measure_lists(setting: Setting, table: ResultTable) -> None:
    """Measure list endpoints with pages of a hundred rows, and the search in a long audit trail."""
    fixtures.create_switches(ENGAGED, ENGAGED)
    token = fixtures.make_token(*lists.SCOPES)
    lists.insert_rows(setting.audited)
    try:
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            seconds = setting.rounds * setting.seconds / 2
            table.print_lists(lists.measure(web, token, setting.audited, seconds))
    finally:
        lists.clear()


def measure_pages(setting: Setting, table: ResultTable) -> None:
    """Measure pages of the console with ten thousand switches and dependencies."""
    audited = 4 * setting.audited
    pages.insert_rows(audited)
    try:
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            person = page_watch.Browser.signed_in(web.port)
            web.settle()
            table.print_pages(pages.measure(person, audited))
    finally:
        pages.clear()


def measure_teams(setting: Setting, table: ResultTable) -> None:
    """Measure the screens of twelve teams, with people whom an identity provider provisions."""
    teams.insert_rows(setting.audited)
    port = free_port()
    variables = teams.sibling_variables(port, setting.token)
    options = {"core": setting.core, "loop": setting.loop, "port": port}
    try:
        with running(WEB, variables=variables, **options) as web:
            person = page_watch.Browser.signed_in(web.port)
            web.settle()
            table.print_teams(teams.measure(web, person, fixtures.make_token("scim")))
    finally:
        teams.clear()


def measure_sizes(setting: Setting, table: ResultTable) -> None:
    """Measure a snapshot and a metrics scrape with ten thousand switches and dependencies."""
    token = fixtures.make_token("switches:read", "metrics:read")
    with running(WEB, core=setting.core, loop=setting.loop) as web:
        table.print_sizes(sizes.measure(web, token))


def measure_checks(setting: Setting, table: ResultTable) -> None:
    """Measure the client's `allowed()`, beside feature flag libraries."""
    switch_checks.create_switches()
    token = fixtures.make_token("switches:read", "report:write")
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        table.print_checks(switch_checks.measure(plane, token, setting.rounds, setting.seconds))


def measure_orders(setting: Setting, table: ResultTable) -> None:
    """Measure emergency orders on two data planes without PostgreSQL and Redis."""
    fixtures.create_switches(ENGAGED, ENGAGED)
    token = fixtures.make_token(*emergency.SCOPES)
    costs = emergency.measure(setting.core, setting.loop, token, setting.folder, setting.orders)
    table.print_orders(costs)


WITH_WRK = {"rows", "many"}
PARTS: dict[str, Callable[[Setting, ResultTable], None]] = {
    "rows": measure_rows,
    "commits": measure_commits,
    "held": partial(measure_listeners, "held", "held polls"),
    "streams": partial(measure_listeners, "streams", "streams"),
    "relays": measure_relays,
    "live": measure_sockets,
    "emergency": measure_orders,
    "storm": measure_cold_start,
    "many": measure_many_switches,
    "ramps": measure_ramps,
    "reports": measure_reports,
    "points": measure_points,
    "judging": measure_evaluation,
    "letters": measure_dead_letters,
    "lists": measure_lists,
    "pages": measure_pages,
    "teams": measure_teams,
    "size": measure_sizes,
    "rest": lambda _setting, table: table.print_idle(idle_processes.measure()),
    "client": measure_checks,
    "patterns": lambda run, table: table.print_guards(guarded_calls.measure(run.rounds)),
}
