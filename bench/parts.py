"""The parts of a run. Each starts the servers it needs, alone on their core, and ends them."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import (
    asking,
    coldstart,
    console,
    fanout,
    ground,
    guarding,
    ingest,
    large,
    letters,
    lists,
    load,
    propagation,
    ramps,
    rest,
    sizes,
    slo_ingest,
    slo_judging,
    sockets,
    targets,
)
from bench.fanout import Spread
from bench.load import Figures
from bench.servers import HOLDER, PLANE, WEB, running
from bench.table import Table

ENGAGED = 100
POLL_P99_MS = 100.0
STREAM_P99_MS = 25.0
PUBLICATION_P99_MS = 50.0
PUBLICATIONS = 50
LIVE_P99_MS = {500: 250.0, 2000: 1000.0}
"""By the number of sockets."""


@dataclass(frozen=True)
class Setting:
    """What all parts share: the server's core and loop, a token, and how much of everything."""

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


def rows(setting: Setting, table: Table) -> None:
    """The data plane against a bare application, request by request."""
    ground.lay(ENGAGED, ENGAGED)
    with ExitStack() as stack:
        rows = targets.serve(stack, setting.core, setting.loop, setting.token, setting.folder)
        for row in rows:
            targets.verify(row)
            load.hit(row, 1)  # Warms connections, caches and branch predictors.
        seen: list[list[Figures]] = [[] for _ in rows]
        for _ in range(setting.rounds):
            for row, figures in zip(rows, seen, strict=True):
                figures.append(load.hit(row, setting.seconds))
    table.rows(rows, [load.middle(figures) for figures in seen])


def commits(setting: Setting, table: Table) -> None:
    """From an operator's commit to one client."""
    ground.lay(ENGAGED, ENGAGED)
    token = setting.token
    keys = [f"told-{n}" for n in range(setting.engages)]
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        polled = propagation.measure(plane, token, keys, propagation.by_poll)
        ground.lay(ENGAGED, ENGAGED)
        streamed = propagation.measure(plane, token, keys, propagation.by_stream)
    table.commit("a poll", polled, POLL_P99_MS)
    table.commit("a stream", streamed, STREAM_P99_MS)


def held(setting: Setting, table: Table) -> None:
    """One change reaches thousands of held polls."""
    _crowd(setting, table, "held", "held polls")


def streams(setting: Setting, table: Table) -> None:
    """One change reaches thousands of streams."""
    _crowd(setting, table, "streams", "streams")


def _crowd(setting: Setting, table: Table, kind: str, called: str) -> None:
    ground.lay(ENGAGED, ENGAGED)
    token, size = setting.token, (setting.listeners, setting.changes)
    spreads: list[Spread] = []
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        answers = targets.record(plane, token, setting.folder)
        name = f"{setting.listeners:,} {called}, {setting.changes} engagements"
        ring = fanout.by_engaging(kind)
        spreads.append(fanout.measure(name, plane, kind, token, *size, ring))
    with running(HOLDER, core=setting.core, loop=setting.loop, answers=answers) as holder:
        ring = fanout.by_hand(holder)
        name = f"bare ASGI, the same {called}"
        spreads.insert(0, fanout.measure(name, holder, kind, token, *size, ring))
    table.spreads(spreads)


def live(setting: Setting, table: Table) -> None:
    """One change reaches hundreds of live sockets, and thousands."""
    for count, wanted in LIVE_P99_MS.items():
        ground.lay(ENGAGED, ENGAGED)
        tokens = ",".join(ground.make_token() for _ in range(-(-count // sockets.EACH)))
        name = f"{count:,} sockets, {setting.changes} engagements"
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            ring = fanout.by_engaging(f"live-{count}")
            seen = fanout.measure(name, web, "sockets", tokens, count, setting.changes, ring)
        table.spreads([seen], wanted)


def storm(setting: Setting, table: Table) -> None:
    """Thousands of services start at once, against the real web process."""
    ground.lay(ENGAGED, ENGAGED)
    with running(WEB, core=setting.core, loop=setting.loop) as web:
        person = console.Browser(web.port)
        person.sign_in(ground.USER, ground.PASSWORD)
        seen = coldstart.measure(web, setting.token, setting.newcomers, ENGAGED, person)
    table.cold_start(seen)


def many(setting: Setting, table: Table) -> None:
    """Ten thousand known switches."""
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        seen = large.measure(plane, setting.token, setting.rounds, setting.seconds, PUBLICATIONS)
    table.sizes(seen)
    table.commit("200 whole, 1,000 engaged", seen.known, PUBLICATION_P99_MS)
    table.commit("200 whole, new switches", seen.new, PUBLICATION_P99_MS)


def reports(setting: Setting, table: Table) -> None:
    """A fleet reports its breakers."""
    token = ground.make_token("report:write")
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        table.ingest(ingest.measure(plane, token, setting.reporters, setting.reporting))


def ramping(setting: Setting, table: Table) -> None:
    """A thousand ramps under way. No server runs, so this process need not keep to its core."""
    load_core = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {setting.core, *load_core})
    try:
        table.ramps(ramps.measure(setting.ramps))
    finally:
        os.sched_setaffinity(0, load_core)


def judging(setting: Setting, table: Table) -> None:
    """A thousand SLOs and ten thousand. No server runs, so this process has both cores."""
    load_core = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {setting.core, *load_core})
    try:
        table.judging(slo_judging.measure())
    finally:
        os.sched_setaffinity(0, load_core)


def points(setting: Setting, table: Table) -> None:
    """Counters of a thousand SLOs are pushed."""
    slo_ingest.lay()
    token = ground.make_token("slo:write")
    try:
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            table.pushed(slo_ingest.measure(web, token, setting.rounds * setting.seconds))
    finally:
        ground.clear_slos()


def dead_letters(setting: Setting, table: Table) -> None:
    """A hundred thousand dead letters in one stream."""
    token = ground.make_token("dlq:read")
    letters.fill(setting.letters)
    try:
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            person = console.Browser(web.port)
            person.sign_in(ground.USER, ground.PASSWORD)
            table.letters(letters.measure(web, token, person, setting.letters))
    finally:
        letters.clear()


def pages(setting: Setting, table: Table) -> None:
    """Lists of a hundred rows, what needs attention, and the search in a long audit trail."""
    ground.lay(ENGAGED, ENGAGED)
    token = ground.make_token(*lists.SCOPES)
    lists.insert_rows(setting.audited)
    try:
        with running(WEB, core=setting.core, loop=setting.loop) as web:
            seconds = setting.rounds * setting.seconds / 2
            table.lists(lists.measure(web, token, setting.audited, seconds))
    finally:
        lists.clear()


def size(setting: Setting, table: Table) -> None:
    """Ten thousand switches and dependencies in a snapshot and a scrape."""
    token = ground.make_token("switches:read", "metrics:read")
    with running(WEB, core=setting.core, loop=setting.loop) as web:
        table.weights(sizes.measure(web, token))


def at_rest(_setting: Setting, table: Table) -> None:
    """An idle installation with its own PostgreSQL and Redis."""
    table.at_rest(rest.measure())


def client(setting: Setting, table: Table) -> None:
    """What a question costs a service, beside other libraries."""
    asking.lay()
    token = ground.make_token("switches:read", "report:write")
    with running(PLANE, core=setting.core, loop=setting.loop) as plane:
        table.asking(asking.measure(plane, token, setting.rounds, setting.seconds))


def patterns(setting: Setting, table: Table) -> None:
    """What breakers and policies add to a call, beside other libraries. Needs no server."""
    table.guarding(guarding.measure(setting.rounds))


WITH_WRK = {"rows", "many"}
PARTS: dict[str, Callable[[Setting, Table], None]] = {
    "rows": rows,
    "commits": commits,
    "held": held,
    "streams": streams,
    "live": live,
    "storm": storm,
    "many": many,
    "ramps": ramping,
    "reports": reports,
    "points": points,
    "judging": judging,
    "letters": dead_letters,
    "lists": pages,
    "size": size,
    "rest": at_rest,
    "client": client,
    "patterns": patterns,
}
