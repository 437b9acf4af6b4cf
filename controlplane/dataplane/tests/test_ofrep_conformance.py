"""The OFREP conformance suite against the data plane under the real server."""

from controlplane.dataplane.tests.served import READER
from controlplane.dataplane.tests.test_ofrep import SALT, entry
from controlplane.dataplane.tests.test_ofrep_client import Served, server
from ofrep_conformance.manifest import parse_manifest
from ofrep_conformance.registry import Level, Verdict
from ofrep_conformance.runner import run_checks

__all__ = ["server"]
SKIPPED = {
    "configuration.etag",
    "configuration.shape",
    "errors.targeting-key-missing",  # A ramping switch is off without a targeting key.
    "http.retry-after",
}
"""Checks of optional features that the data plane does not have."""


def test_data_plane_passes_the_conformance_suite(server: Served) -> None:
    server.publish(entry("segment:finance"), entry("feature:export", "10.95", salt=SALT))
    flags = {"segment:finance": False, "feature:search": True, "feature:export": True}
    document = {
        "headers": {"Authorization": f"Bearer {READER}"},
        "flags": [{"key": key, "value": value} for key, value in flags.items()],
        "context": {"targetingKey": "u1"},
        "other_context": {},
        "unknown": "feature:ofrep-conformance",
    }

    results = list(run_checks(parse_manifest(document, server.url)))

    verdicts = {result.check.id: result.verdict for result in results}
    failed = {
        name: r.details for r in results if r.verdict is Verdict.FAILED for name in [r.check.id]
    }
    assert failed == {}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.SKIPPED} == SKIPPED
    optional = {result.check.id for result in results if result.check.level is Level.MAY}
    not_offered = {name for name, verdict in verdicts.items() if verdict is Verdict.NOT_OFFERED}
    assert not_offered == optional  # CORS, which a proxy adds.


def test_suite_notices_a_value_that_is_not_published(server: Served) -> None:
    server.publish(entry("segment:finance"))
    document = {
        "headers": {"Authorization": f"Bearer {READER}"},
        "flags": [{"key": "segment:finance", "value": True}],
    }

    only = ("single.value", "bulk.known-flags")
    results = run_checks(parse_manifest(document, server.url), only)

    assert [result.verdict for result in results] == [Verdict.FAILED, Verdict.FAILED]
