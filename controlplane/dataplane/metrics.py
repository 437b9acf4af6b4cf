"""Prometheus metrics of the data plane, from memory only.

A standalone data plane's availability metrics have names of their own, because they don't describe
the console.
"""

import os
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from controlplane.core import exposition
from controlplane.core.exposition import make_gauge
from controlplane.dataplane import histograms

from .relay.relay_ledger import RelayLedger
from .serving.responses import Response
from .state import State

PEER_STATUSES = ("reachable", "unreachable", "older")
BUNDLE_OUTCOMES = ("applied", "invalid", "older")
BATCH_OUTCOMES = ("accepted", "repeated", "refused")
REQUEST_OUTCOMES = ("accepted", "failed")
EXCHANGE_OUTCOMES = ("succeeded", "failed")


def render_metrics(state: State, accept: str, accept_encoding: str = "") -> Response:
    """Return a response with the metrics in the format that `accept` asks for."""
    registry = exposition.make_registry(StateCollector(state))
    page = exposition.Exposition(*exposition.encode_metrics(registry, accept))
    content, headers_by_name = page.headers(accept_encoding)
    headers = [(name.lower().encode(), value.encode()) for name, value in headers_by_name.items()]
    return 200, headers, content


def process_metrics(state: State) -> Iterator[Metric]:
    """Yield the metrics of this process, for a standalone data plane and for the web process."""
    worker = str(os.getpid())  # A scrape reaches one of several workers: one series each.
    yield histograms.build_family(
        "switchgear_dataplane_answer_seconds",
        "Response time of service requests in seconds, without long polls and streams.",
        ("kind", "worker"),
        [((kind, worker), each) for kind, each in list(state.answer_seconds.items())],
    )
    yield histograms.build_family(
        "switchgear_propagation_seconds",
        "Seconds from a change until this process served it, and until instances acknowledged it.",
        ("stage", "worker"),
        [
            (("served", worker), state.served_seconds),
            (("acknowledged", worker), state.ledger.presence_buffer.acknowledged_seconds),
        ],
    )
    refused = CounterMetricFamily(
        "switchgear_dataplane_sli_refused",
        "Ignored counts in reports, because the token can't act for the SLO's service.",
        labels=["worker"],
    )
    refused.add_metric([worker], state.ledger.refused_sli)
    yield refused
    foreign = CounterMetricFamily(
        "switchgear_dataplane_foreign_requests",
        "Requests in the name of a service that another team owns: reports are refused, and polls"
        " don't count.",
        labels=["worker"],
    )
    foreign.add_metric([worker], state.callers.refused_count)
    yield foreign
    yield from _relay_metrics(state, worker)
    yield from _exchange_metrics(state, worker)
    yield from _order_metrics(state, worker)
    yield from _file_metrics(state, worker)


def _relay_metrics(state: State, worker: str) -> Iterator[Metric]:
    """Yield the metrics of batches from relays, and of a relay's own spool."""
    batches = CounterMetricFamily(
        "switchgear_relay_batches",
        "Batches from relays: accepted, repeated, or refused because their content is invalid.",
        labels=["outcome", "worker"],
    )
    for outcome in BATCH_OUTCOMES:
        batches.add_metric([outcome, worker], state.ledger.batches[outcome])
    yield batches
    ledger = state.ledger
    if not isinstance(ledger, RelayLedger):
        return
    connected = GaugeMetricFamily(
        "switchgear_relay_upstream_up",
        "1 while an upstream confirms what this relay serves.",
        labels=["worker"],
    )
    connected.add_metric([worker], float(state.upstream is None and state.heard_database))
    yield connected
    bundles = CounterMetricFamily(
        "switchgear_relay_bundles",
        "Bundles from upstreams: applied, or refused because they are invalid or older.",
        labels=["outcome", "worker"],
    )
    for outcome in BUNDLE_OUTCOMES:
        bundles.add_metric([outcome, worker], state.bundles[outcome])
    yield bundles
    requests = CounterMetricFamily(
        "switchgear_relay_requests",
        "Requests with batches and status from this relay to its upstreams, by outcome.",
        labels=["outcome", "worker"],
    )
    for outcome in REQUEST_OUTCOMES:
        requests.add_metric([outcome, worker], ledger.requests[outcome])
    yield requests
    refused = CounterMetricFamily(
        "switchgear_relay_spool_refused",
        "Reports and batches that this relay refused because its spool was full.",
        labels=["worker"],
    )
    refused.add_metric([worker], ledger.refused_full)
    yield refused
    size, age = (0, 0.0) if ledger.spool is None else ledger.spool.measure()
    for name, says, value in (
        ("bytes", "Size of what the upstream has not accepted yet.", size),
        ("oldest_seconds", "Age of the oldest record in the spool; 0 if it is empty.", age),
    ):
        family = GaugeMetricFamily(f"switchgear_relay_spool_{name}", says, labels=["worker"])
        family.add_metric([worker], value)
        yield family


def _exchange_metrics(state: State, worker: str) -> Iterator[Metric]:
    """Yield the metrics of the exchange of emergency orders with other data planes."""
    peers = GaugeMetricFamily(
        "switchgear_dataplane_peers",
        "Other data planes in `DATA_PLANES`, by status: reachable, unreachable, or older.",
        labels=["status", "worker"],
    )
    for status in PEER_STATUSES:
        peers.add_metric([status, worker], state.peer_statuses[status])
    yield peers
    exchanges = CounterMetricFamily(
        "switchgear_dataplane_exchanges",
        "Exchanges of emergency orders with other data planes, by outcome.",
        labels=["outcome", "worker"],
    )
    for outcome in EXCHANGE_OUTCOMES:
        exchanges.add_metric([outcome, worker], state.exchanges[outcome])
    yield exchanges
    received = CounterMetricFamily(
        "switchgear_dataplane_orders_received",
        "New emergency orders from other data planes.",
        labels=["worker"],
    )
    received.add_metric([worker], state.orders_received)
    yield received


def _file_metrics(state: State, worker: str) -> Iterator[Metric]:
    """Yield the metrics of the published file, without values if there is none."""
    current = GaugeMetricFamily(
        "switchgear_dataplane_file_current",
        "1 while the file of `SNAPSHOT_PUBLISH_TO` is up to date, 0 after a minute of failures.",
        labels=["worker"],
    )
    if state.has_file is not None:
        current.add_metric([worker], float(state.has_file))
    yield current
    updates = CounterMetricFamily(
        "switchgear_dataplane_file_updates",
        "Updates of the file of `SNAPSHOT_PUBLISH_TO`, by outcome: write, keep or fail.",
        labels=["outcome", "worker"],
    )
    for outcome in ("write", "keep", "fail") if state.file_updates else ():
        updates.add_metric([outcome, worker], state.file_updates[outcome])
    yield updates


def _order_metrics(state: State, worker: str) -> Iterator[Metric]:
    opened = GaugeMetricFamily(
        "switchgear_emergency_orders_open",
        "Emergency orders that block a switch in this process and are not closed yet.",
        labels=["worker"],
    )
    opened.add_metric([worker], len(state.orders.open))
    yield opened
    answers = CounterMetricFamily(
        "switchgear_emergency_order_answers",
        "Answers to emergency orders and withdrawals; 201 for accepted ones.",
        labels=["code", "worker"],
    )
    for code, times in sorted(state.order_answers.items()):
        answers.add_metric([str(code), worker], times)
    yield answers
    checks = CounterMetricFamily(
        "switchgear_emergency_code_checks",
        "Checks of emergency codes: correct, wrong, or limited after too many wrong ones.",
        labels=["result", "worker"],
    )
    for result in ("correct", "wrong", "limited"):
        checks.add_metric([result, worker], state.code_checks[result])
    yield checks


class StateCollector:
    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        state, status = self._state, self._state.status()
        yield exposition.build_info()
        yield from exposition.snapshot_metrics(status.version, status.age_seconds)
        for name, says, value in (
            (
                "database_up",
                "1 while PostgreSQL responds to this process.",
                state.database_reachable,
            ),
            (
                "redis_up",
                "1 while this process receives notifications from Redis.",
                state.redis_reachable,
            ),
            ("confirmed", "0 while only the copy on disk is served.", state.heard_database),
            ("held", "Long polls and streams open in this process.", len(state.listeners)),
            ("relays", "Relays that follow this process.", state.relay_streams),
            ("held_most", "Maximum number of open long polls and streams.", state.listeners.most),
        ):
            yield make_gauge(f"switchgear_dataplane_{name}", says, value)
        answered = CounterMetricFamily(
            "switchgear_dataplane_answers",
            "Answered requests of services; streams count when they end.",
            labels=["code", "worker"],  # A scrape reaches one of several workers: one series each.
        )
        for code, times in sorted(state.answered.items()):
            if code:  # 0: the caller disconnected before an answer began.
                answered.add_metric([str(code), str(os.getpid())], times)
        yield answered
        yield from process_metrics(state)
