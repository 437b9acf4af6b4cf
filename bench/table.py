"""Prints the results: every figure with its target, and whether it is met."""

from collections.abc import Iterator, Sequence

from . import idle_processes, sizes, teams
from .breaker_reports import ReportCosts
from .coldstart import ColdStart
from .dead_letters import COLD_SECONDS, GROUPS_MS, MAX_GROWTH_MIB, DeadLetterCosts
from .emergency import OrderCosts
from .fanout import FanoutCost
from .guarded_calls import ALONE, OTHERS, OURS, PEER, STACK, GuardCosts
from .idle_processes import ProcessCost
from .latencies import Latencies
from .lists import ROWS, Lists
from .many_switches import SizeCosts
from .pages import Pages
from .ramps import RampCosts
from .relays import BundleCosts, RelayCosts
from .rows import FROM_RELAY
from .sizes import SnapshotSizes
from .slo_evaluation import EvaluationCosts
from .slo_ingest import WANTED_POINTS, PushCosts
from .switch_checks import CheckCosts
from .teams import TeamCosts
from .ticks import TickCost
from .wrk import LoadFigures, LoadTarget

WANTED_RATIO = {"snapshot 304": 0.8, "snapshot 200, 100 engaged": 0.8}
WANTED_RELAY_RATIO = 0.95
"""Ratio of a relay's throughput to that of a data plane."""
WANTED_LARGE_RATIO = 0.95
REACH_P99_MS = 250.0
RELAYS_CPU_PERCENT, BUNDLE_MS = 5.0, 2.0
COLD_P99_MS = 1000.0
OWN_ORDER_P99_MS, PEER_ORDER_P99_MS = 50.0, 1500.0
PAGE_P99_MS = 1000.0
TICK_SECONDS = 1.0
INGEST_P99_MS = 100.0
MAX_WRITES = 1.01
EVALUATION_SECONDS = {(1_000, 1): 0.25, (1_000, 30): 0.25, (10_000, 1): 3.0}
"""Target seconds of one evaluation, by number of SLOs and days of history."""
HISTORY_FACTOR = 1.5
MIN_SPEEDUP = 8.0
"""Required factor by which our check is faster than the fastest other library."""
DISTURBED_FACTOR = 1.25
ALLOWED_US, SECOND_LOOK_US = 0.25, 0.1
MAX_BREAKER_MICROS, BREAKER_SHARE = 0.5, 1.0
"""Limits of the microseconds our breaker adds: absolute, and as a share of circuitbreaker's."""
MAX_POLICY_SHARE, COROUTINE_STACK_SHARE = 5 / 12, 8 / 22
"""Share of what another library's retries add: 5 of its 12 µs, and 8 of its 22.

A share is the same on every processor.
"""
TOGETHER_SECONDS = 0.15
MIN_PAGES_PER_CORE = 400
"""Target of pages per second and core of the web process."""
SEARCH_P99_MS = 100.0
LARGE_PAGE_P95_MS = 150.0
SNAPSHOT_KB, SCRAPE_CPU_MS = 60, 30
RESTING_CPU_PERCENT = 3.0
BUSY_SHARE = 0.9
"""Above this share of its core, the load process itself may limit the result."""


class ResultTable:
    """Prints results as they come, and collects the missed targets in `missed`."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def print_requests(self, rows: Sequence[LoadTarget], figures: Sequence[LoadFigures]) -> None:
        """Print throughput and CPU time of requests, with ratios to a bare application."""
        _head("", "requests/s", "p99 ms", "CPU µs", "ratio", "CPU ratio", "load")
        bare = figures[0]
        for row, result in zip(rows, figures, strict=True):
            if row.name.startswith("bare"):
                bare = result
            ratio = result.requests_per_second / bare.requests_per_second
            cells = _cells(result, ratio, bare.cpu_us / result.cpu_us)
            self._line(row.name, *cells, target=_at_least(ratio, WANTED_RATIO.get(row.name)))
        by_name = {row.name: result for row, result in zip(rows, figures, strict=True)}
        for name, result in by_name.items():
            if name.endswith(FROM_RELAY):
                plane = by_name[name.removesuffix(FROM_RELAY)]
                ratio = result.requests_per_second / plane.requests_per_second
                target = _at_least(ratio, WANTED_RELAY_RATIO)
                self._line(f"  {name}: ratio to a data plane", f"{ratio:.2f}", target=target)

    def print_fanout(
        self, spreads: Sequence[FanoutCost], reach_p99_ms: float = REACH_P99_MS
    ) -> None:
        """Print the latencies of one change to many clients, and its cost to server and clients."""
        _head("", "p50 ms", "p99 ms", "worst ms", "KiB/conn.", "CPU ms", "load ms")
        for result in spreads:
            cells = (*_three(result.latencies), f"{result.kib:.1f}", f"{result.cpu_ms:.0f}")
            wanted = None if result.name.startswith("bare") else reach_p99_ms
            target = _under("p99", result.latencies.p99_ms, wanted)
            self._line(result.name, *cells, f"{result.load_ms:.0f}", target=target)
            _stalled(result.latencies)

    def print_relays(self, result: RelayCosts, bundles: BundleCosts) -> None:
        """Print what relays cost their data plane, and the cost of each bundle."""
        _head("", "p50 ms", "p99 ms", "worst ms", "CPU ms", "bytes")
        cells = (*_three(result.latencies), f"{result.cpu_ms:.0f}", f"{result.change_bytes:,.0f}")
        name = f"{result.count:,} relays, {bundles.engaged:,} engaged, one change"
        target = _under("p99", result.latencies.p99_ms, REACH_P99_MS)
        self._line(name, *cells, target=target)
        _stalled(result.latencies)
        is_met = result.rest_percent < RELAYS_CPU_PERCENT
        target = (f"< {RELAYS_CPU_PERCENT:.0f} %", is_met)
        self._line("  at rest, share of a core", f"{result.rest_percent:.1f} %", target=target)
        _head("", "collect ms", "sign ms", "diff. ms", "apply ms")
        steps = (bundles.collect_ms, bundles.sign_ms, bundles.difference_ms)
        cells = tuple(f"{each:.2f}" for each in (*steps, bundles.apply_ms))
        target = (f"first 3 < {BUNDLE_MS:.0f} ms", sum(steps) < BUNDLE_MS)
        self._line(f"a bundle, {bundles.engaged:,} engaged", *cells, target=target)

    def print_commit(self, way: str, result: Latencies, wanted_p99_ms: float) -> None:
        """Print the latency of a change from its commit to one client, received by `way`."""
        _head("", "p50 ms", "p99 ms", "worst ms")
        name = f"commit → {way}, {result.count} times"
        self._line(name, *_three(result), target=_under("p99", result.p99_ms, wanted_p99_ms))
        _stalled(result)

    def print_orders(self, result: OrderCosts) -> None:
        """Print how fast emergency orders take effect without PostgreSQL, and the cost of many."""
        _head("", "p50 ms", "p99 ms", "worst ms")
        for plane, reached, most in (
            ("the accepting plane", result.own, OWN_ORDER_P99_MS),
            ("its peer", result.peer, PEER_ORDER_P99_MS),
        ):
            target = _under("p99", reached.p99_ms, most)
            name = f"order → a stream of {plane}, {reached.count} times"
            self._line(name, *_three(reached), target=target)
        self._line(f"{result.crowd:,} orders at once, the answers", *_three(result.accepted))
        self._line("  all of them served by both planes", f"{result.crowd_seconds:.1f} s")
        restart = f"  {result.total:,} orders served again after a restart"
        self._line(restart, f"{result.restart_seconds:.1f} s")
        _stalled(result.own)

    def print_cold_start(self, result: ColdStart) -> None:
        """Print latencies of new clients, and of console pages before and during the cold start."""
        _head("", "p50 ms", "p99 ms", "worst ms", "CPU µs", "load", "late ms")
        cells = (f"{result.cpu_us:.0f}", f"{result.load_share:.2f}", f"{result.late_ms:.0f}")
        name = f"{result.count:,} cold starts in 10 s"
        target = _under("p99", result.latencies.p99_ms, COLD_P99_MS)
        self._line(name, *_three(result.latencies), *cells, target=target)
        lost = sum(result.lost.values())
        why = ", ".join(f"{count} × {reason}" for reason, count in result.lost.items())
        self._line("  lost", f"{lost}", target=("none", lost == 0))
        if why:
            print(f"  {why}")
        _stalled(result.latencies)
        for page, busy in result.busy.items():
            self._line(f"  {page}, idle", *_three(result.idle[page]))
            target = _under("p99", busy.p99_ms, PAGE_P99_MS)
            self._line(f"  {page}, meanwhile", *_three(busy), target=target)

    def print_many_switches(self, result: SizeCosts) -> None:
        """Print the cost of polls with many switches against few."""
        _head("", "requests/s", "p99 ms", "CPU µs", "ratio", "CPU ratio", "load")
        self._line("snapshot 304, 100 known and engaged", *_cells(result.small, 1, 1))
        cpu_ratio = result.small.cpu_us / result.large.cpu_us
        ratio = result.large.requests_per_second / result.small.requests_per_second
        cells = _cells(result.large, ratio, cpu_ratio)
        target = _at_least(cpu_ratio, WANTED_LARGE_RATIO)
        self._line("snapshot 304, 10,000 known, 1,000 engaged", *cells, target=target)

    def print_ramps(self, result: RampCosts) -> None:
        """Print the cost of the periodic ramp task over all ramps, and of rolling many back."""
        _head("", "CPU ms", "database", "wall ms", "ms a ramp")
        count = f"{result.count:,} ramps"
        looked, moved, back = result.dwelling, result.advancing, result.going_back
        in_time = (f"CPU < {TICK_SECONDS * 1e3:.0f} ms", looked.cpu < TICK_SECONDS)
        self._line(f"{count}, all dwell", *_format_cost(looked, result.count), target=in_time)
        cost = _format_cost(moved, moved.moved, besides=looked)
        in_time = (in_time[0], moved.cpu < TICK_SECONDS and moved.moved == result.ready)
        self._line(f"{count}, {moved.moved} of {result.ready} advance", *cost, target=in_time)
        self._line(f"{count}, {back.moved} go back at once", *_format_cost(back, back.moved))
        print(f"  (the last was at 0 % after {back.wall:.1f} s, in {result.ticks} ticks)")

    def print_evaluation(self, result: Sequence[EvaluationCosts]) -> None:
        """Print the cost of evaluating all SLOs, and whether it is independent of their history."""
        _head("", "CPU ms", "database", "wall ms", "ms an SLO")
        for one in result:
            name = f"{one.count:,} SLOs judged, {one.days} d of history"
            wanted = EVALUATION_SECONDS.get((one.count, one.days))
            target = None
            if wanted is not None:
                target = (f"CPU < {wanted * 1e3:,.0f} ms", one.turn.cpu < wanted)
            self._line(name, *_format_cost(one.turn, one.count), target=target)
        short, long = (one.turn.cpu + (one.turn.database or 0.0) for one in result[:2])
        flat = (f"≤ {HISTORY_FACTOR}", long <= short * HISTORY_FACTOR)
        self._line("  a month of history beside a day", f"{long / short:.2f}", target=flat)

    def print_reports(self, result: ReportCosts) -> None:
        """Print latencies of breaker reports, and the shares of a core that they cost."""
        _head("", "p50 ms", "p99 ms", "worst ms", "server", "database", "load")
        database = "–" if result.database_share is None else f"{result.database_share:.2f}"
        shares = (f"{result.server_share:.2f}", database, f"{result.load_share:.2f}")
        name = f"{result.latencies.count:,} reports of {result.count:,} instances"
        target = _under("p99", result.latencies.p99_ms, INGEST_P99_MS)
        self._line(name, *_three(result.latencies), *shares, target=target)
        lost = sum(result.lost.values())
        self._line("  lost or waiting at the end", f"{lost}", target=("none", lost == 0))
        writes = ("≤ 1", result.writes <= MAX_WRITES)
        self._line("  rows written for an unchanged one", f"{result.writes:.3f}", target=writes)
        if lost:
            print("  " + ", ".join(f"{count} × {why}" for why, count in result.lost.items()))
        print(f"  (the load was up to {result.late_ms:.0f} ms late)")
        _stalled(result.latencies)

    def print_points(self, rows: Sequence[PushCosts]) -> None:
        """Print pushed points per second, and the server's CPU time per point."""
        _head("", "points/s", "p50 ms", "p99 ms", "worst ms", "CPU µs")
        for result in rows:
            name = f"pushed points, {result.batch:,} in a batch"
            cells = (f"{result.points:,.0f}", *_three(result.latencies), f"{result.cpu_us:.1f}")
            self._line(
                name, *cells, target=_at_least(result.points, WANTED_POINTS.get(result.batch))
            )
            _stalled(result.latencies)

    def print_dead_letters(self, result: DeadLetterCosts) -> None:
        """Print latencies of dead letter pages, the time to index all letters, and memory."""
        _head("", "p50 ms", "p99 ms", "worst ms")
        for one in result.requests:
            target = _under("p99", one.latencies.p99_ms, one.wanted_ms)
            self._line(one.name, *_three(one.latencies), target=target)
        _head(f"{result.count:,} dead letters", "wall s", "CPU s", "MiB")
        first = result.first_groups_ms
        target = _under("it", first, GROUPS_MS)
        self._line("groups, nothing read yet", f"{first / 1e3:.2f}", target=target)
        cells = f"{result.cold_seconds:.1f}", f"{result.cold_cpu:.1f}"
        in_time = (f"CPU < {COLD_SECONDS:.0f} s", result.cold_cpu < COLD_SECONDS)
        self._line("all read into the index", *cells, target=in_time)
        bounded = (f"< {MAX_GROWTH_MIB:.0f} MiB", result.growth_mib < MAX_GROWTH_MIB)
        self._line("the server grew by", "", "", f"{result.growth_mib:.0f}", target=bounded)

    def print_lists(self, result: Lists) -> None:
        """Print throughput of list endpoints, also per CPU core, and of audit searches."""
        _head(f"API, pages of {ROWS} rows", "requests/s", "p50 ms", "p99 ms", "CPU ms", "per core")
        for page in (*result.pages, result.attention):
            took = page.latencies
            per_core = 1e3 / page.cpu_ms
            cells = (f"{page.requests_per_second:,.0f}", f"{took.p50_ms:.1f}", f"{took.p99_ms:.1f}")
            is_list = page is not result.attention
            target = (f"≥ {MIN_PAGES_PER_CORE} per core", per_core >= MIN_PAGES_PER_CORE)
            self._line(
                page.name,
                *cells,
                f"{page.cpu_ms:.2f}",
                f"{per_core:,.0f}",
                target=target if is_list else None,
            )
        _head(f"search in {result.audited:,} audit rows", "p50 ms", "p99 ms", "worst ms")
        for name, took in result.searches:
            self._line(name, *_three(took), target=_under("p99", took.p99_ms, SEARCH_P99_MS))

    def print_pages(self, result: Pages) -> None:
        """Print latencies of pages with thousands of rows behind them."""
        _head(f"pages, {result.audited:,} audit rows", "p50 ms", "p95 ms", "worst ms")
        for name, took in result.pages:
            cells = (f"{took.p50_ms:.1f}", f"{took.p95_ms:.1f}", f"{took.worst_ms:.1f}")
            self._line(name, *cells, target=_under("p95", took.p95_ms, LARGE_PAGE_P95_MS))

    def print_teams(self, result: TeamCosts) -> None:
        """Print latencies of the screens of an organization, and the time to provision it."""
        head = f"{teams.SWITCHES:,} switches, {len(teams.GROUP_NAMES)} teams, {teams.PEOPLE} people"
        _head(head, "p50 ms", "p95 ms", "worst ms")
        for name, took in result.pages:
            cells = (f"{took.p50_ms:.1f}", f"{took.p95_ms:.1f}", f"{took.worst_ms:.1f}")
            self._line(name, *cells, target=_under("p95", took.p95_ms, LARGE_PAGE_P95_MS))
        self._line("all people and groups by SCIM, s", f"{result.provisioned_seconds:.1f}")

    def print_sizes(self, result: SnapshotSizes) -> None:
        """Print the sizes of a snapshot and of a metrics scrape, and the CPU time of the scrape."""
        known = f"{sizes.KNOWN:,} switches ({sizes.ENGAGED:,} engaged)"
        head = f"{known}, {sizes.DEPENDENCIES:,} dependencies"
        _head(head, "KB", "gzip KB", "CPU ms")
        kilobytes = (
            f"{result.snapshot_bytes / 1e3:,.0f}",
            f"{result.snapshot_gzip_bytes / 1e3:.1f}",
        )
        enough = (f"gzip ≤ {SNAPSHOT_KB} KB", result.snapshot_gzip_bytes <= SNAPSHOT_KB * 1e3)
        self._line("snapshot", *kilobytes, "", target=enough)
        kilobytes = (f"{result.scrape_bytes / 1e3:,.0f}", f"{result.scrape_gzip_bytes / 1e3:.1f}")
        enough = (f"CPU ≤ {SCRAPE_CPU_MS} ms", result.scrape_cpu_ms <= SCRAPE_CPU_MS)
        self._line("/metrics, rebuilt", *kilobytes, f"{result.scrape_cpu_ms:.0f}", target=enough)

    def print_idle(self, result: Sequence[ProcessCost]) -> None:
        """Print CPU and memory of every process of an idle installation."""
        _head(f"at rest, {idle_processes.MEASURED_SECONDS:.0f} s", "CPU %", "PSS MiB", "RSS MiB")
        for one in result:
            self._line(
                one.name, f"{one.cpu_percent:.2f}", f"{one.pss_mib:.0f}", f"{one.rss_mib:.0f}"
            )
        cpu = sum(one.cpu_percent for one in result)
        pss, rss = sum(one.pss_mib for one in result), sum(one.rss_mib for one in result)
        enough = (f"< {RESTING_CPU_PERCENT:g} % of a core", cpu < RESTING_CPU_PERCENT)
        self._line("all", f"{cpu:.2f}", f"{pss:.0f}", f"{rss:.0f}", target=enough)

    def print_checks(self, result: CheckCosts) -> None:
        """Print the microseconds of a check by library, with ratios to our client."""
        _head("1,000 engaged, half of the questions for them", "µs", "ratio")
        micros = dict(result.micros)
        ours = micros.pop("switchgear")
        floor = "a dict in a function"
        fastest = min(took for name, took in micros.items() if name != floor)
        is_fast = fastest / ours >= MIN_SPEEDUP and ours < ALLOWED_US
        enough = (f"≥ {MIN_SPEEDUP}, < {ALLOWED_US}", is_fast)
        self._line("switchgear, allowed()", f"{ours:.2f}", "1.0", target=enough)
        for name, took in sorted(micros.items(), key=lambda each: each[1]):
            self._line(name, f"{took:.2f}", f"{took / ours:.1f}")
        for name, took in (
            ("check()", result.check),
            ("all engaged to release themselves", result.releasing),
            ("a ramping switch, by user", result.ramping),
        ):
            self._line(f"switchgear, {name}", f"{took:.2f}", f"{took / ours:.1f}")
        _head("one allowed(), with the time of looking", "p50 µs", "p99 µs", "worst µs", "ratio")
        self._line("the console is well", *(f"{each:.2f}" for each in result.honest))
        ratio = result.hanging[1] / result.honest[1]
        still = (f"≤ {DISTURBED_FACTOR}", ratio <= DISTURBED_FACTOR)
        cells = (*(f"{each:.2f}" for each in result.hanging), f"{ratio:.2f}")
        self._line("the console hangs, and the client knows", *cells, target=still)
        name = f"{result.questions:,} questions, more than are kept"
        self._line(name, *(f"{each:.2f}" for each in result.crowded))

    def print_guards(self, result: GuardCosts) -> None:
        """Print the cost that breakers and policies add, by library, with ratios to ours."""
        self._print_rows("around a function", result.breakers, ALONE)
        self._print_rows("around a function, all of it", result.stacks, STACK, MAX_POLICY_SHARE)
        self._print_rows(
            "around a coroutine function", result.coroutines, STACK, COROUTINE_STACK_SHARE
        )
        _head("second check within a guarded call", "µs")
        quick = (f"< {SECOND_LOOK_US} µs", result.second_look < SECOND_LOOK_US)
        self._line("switchgear, a second look", f"{result.second_look:.3f}", target=quick)
        _head("ten threads through one breaker, 0.1 s each", "s")
        for name, seconds in result.together.items():
            in_time = (f"< {TOGETHER_SECONDS} s", seconds < TOGETHER_SECONDS)
            target = in_time if name == "switchgear" else None
            self._line(name, f"{seconds:.2f}", target=target)

    def _print_rows(
        self, name: str, micros: dict[str, float], ours: str, share: float = 0.0
    ) -> None:
        """Print the microseconds added by each library, with ratios to our entry `ours`.

        Print the targets as well: a policy of ours may add the share `share` of the cost of others'
        retries.
        """
        _head(name, "added µs", "ratio")
        for each, took in micros.items():
            ratio = "" if each in OURS and each != ours else f"{took / micros[ours]:.1f}"
            target = None
            if each == ALONE:
                of_others = took / micros.get(PEER, took)
                held = took <= MAX_BREAKER_MICROS and of_others <= BREAKER_SHARE
                target = (f"≤ {MAX_BREAKER_MICROS} µs, ≤ {BREAKER_SHARE}", held)
            elif each == STACK:
                of_others = took / micros[OTHERS]
                target = (f"≤ {share:.2f}: {of_others:.2f}", of_others <= share)
            self._line(each, f"{took:.2f}", ratio, target=target)

    def _line(self, name: str, *cells: str, target: tuple[str, bool] | None = None) -> None:
        wanted, held = target or ("", True)
        verdict = "" if target is None else "held" if held else "MISSED"
        padded = "".join(f"{cell:>11}" for cell in (*cells, *[""] * (6 - len(cells))))
        print(f"{name:46}{padded}  {wanted:16}{verdict}".rstrip(), flush=True)
        if not held:
            self.missed.append(f"{name.strip()}: target {wanted}")


def _head(*names: str) -> None:
    filled = (*names, *[""] * (7 - len(names)))
    print("\n" + f"{filled[0]:46}" + "".join(f"{each:>11}" for each in filled[1:]) + "  target")


def _cells(result: LoadFigures, ratio: float, cpu_ratio: float) -> Iterator[str]:
    yield f"{result.requests_per_second:,.0f}"
    yield f"{result.p99_ms:.2f}"
    yield f"{result.cpu_us:.1f}"
    yield f"{ratio:.2f}"
    yield f"{cpu_ratio:.2f}"
    yield f"{result.load_share:.2f}" + ("!" if result.load_share > BUSY_SHARE else "")


def _three(result: Latencies) -> tuple[str, str, str]:
    return f"{result.p50_ms:.1f}", f"{result.p99_ms:.1f}", f"{result.worst_ms:.1f}"


def _format_cost(result: TickCost, ramps: int, besides: TickCost | None = None) -> tuple[str, ...]:
    """Return table cells: CPU, database and wall time in ms, and wall time per ramp.

    The cost `besides`, which is not due to the ramps, is subtracted from the time per ramp.
    """
    database = "–" if result.database is None else f"{result.database * 1e3:.0f}"
    each = (result.wall - (besides.wall if besides else 0.0)) / ramps * 1e3
    return f"{result.cpu * 1e3:.0f}", database, f"{result.wall * 1e3:.0f}", f"{each:.2f}"


def _stalled(result: Latencies) -> None:
    print(f"  (meanwhile this machine itself stalled for up to {result.stall_ms:.0f} ms)")


def _at_least(ratio: float, wanted: float | None) -> tuple[str, bool] | None:
    return None if wanted is None else (f"≥ {wanted}", ratio >= wanted)


def _under(name: str, ms: float, wanted: float | None) -> tuple[str, bool] | None:
    return None if wanted is None else (f"{name} < {wanted:.0f} ms", ms < wanted)
