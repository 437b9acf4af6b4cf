"""Each check: passed by a right server, failed by one with the defect that it is for."""

import pytest

from ofrep_conformance.manifest import parse_manifest
from ofrep_conformance.registry import CHECKS, CheckResult, Level, Verdict
from ofrep_conformance.runner import run_checks
from ofrep_conformance.tests.reference_server import MANIFEST, serve

DEFECTS = [
    ("bulk 204", "bulk.status"),
    ("html", "single.json"),
    ("html", "bulk.json"),
    ("flags object", "bulk.json"),
    ("ascii targeting key", "single.unicode-targeting-key"),
    ("flat context", "single.rich-context"),
    ("raw key", "single.percent-encoding"),
    ("number for boolean", "single.type"),
    ("inverted", "single.value"),
    ("other key", "single.key"),
    ("null variant", "single.variant"),
    ("null reason", "single.reason"),
    ("own reason", "single.known-reason"),
    ("nested metadata", "single.metadata"),
    ("nested metadata", "bulk.entries"),
    ("error code on 200", "single.no-error"),
    ("unknown is off", "errors.unknown-flag"),
    ("plain 404", "errors.not-found-body"),
    ("latin key", "errors.unknown-unicode-key"),
    ("slash splits", "errors.slash-in-key"),
    ("broken 422", "errors.broken-json"),
    ("broken 422", "errors.bulk-broken-json"),
    ("own code", "errors.failure-body"),
    ("failure without key", "errors.failure-body"),
    ("html", "errors.bulk-failure-body"),
    ("general code", "errors.parse-error"),
    ("general code", "errors.invalid-context-code"),
    ("any context", "errors.invalid-context"),
    ("any context", "errors.bulk-invalid-context"),
    ("any key type", "errors.targeting-key-type"),
    ("split without key", "errors.targeting-key-missing"),
    ("empty crashes", "errors.empty-body"),
    ("open", "auth.missing"),
    ("any token", "auth.wrong"),
    ("no challenge", "auth.challenge"),
    ("entry without key", "bulk.entries"),
    ("not listed", "bulk.known-flags"),
    ("number for boolean", "bulk.known-flags"),
    ("listed twice", "bulk.unique-keys"),
    ("bulk differs", "bulk.same-as-single"),
    ("bulk metadata", "bulk.metadata"),
    ("no etag", "etag.present"),
    ("unquoted", "etag.syntax"),
    ("new etag", "etag.stable"),
    ("never 304", "etag.not-modified"),
    ("content on 304", "etag.empty-304"),
    ("bare 304", "etag.on-304"),
    ("always 304", "etag.other"),
    ("strong comparison", "etag.weak"),
    ("one tag", "etag.list"),
    ("no star", "etag.star"),
    ("one etag", "etag.context"),
    ("stream without url", "events.entries"),
    ("plain stream", "events.connect"),
    ("plain event", "events.first-event"),
    ("strict query", "events.refetch"),
    ("own type", "configuration.shape"),
    ("configuration anew", "configuration.etag"),
    ("get accepted", "http.get"),
    ("no allow", "http.get"),
    ("head crashes", "http.head"),
    ("any method", "http.unknown-method"),
    ("strict media type", "http.media-type-parameters"),
    ("any bytes", "http.invalid-utf8"),
    ("large crashes", "http.large-body"),
    ("deep crashes", "http.deep-body"),
    ("null crashes", "http.null-context"),
    ("one at a time", "http.unfinished-body"),
    ("racy", "http.concurrent"),
    ("limited without date", "http.retry-after"),
    ("no preflight", "cors.preflight"),
    ("cors headers", "cors.headers"),
    ("hidden etag", "cors.expose-etag"),
    ("unknown known", "single.status"),
]


def run_against(*defects: str, only: tuple[str, ...] = ()) -> dict[str, CheckResult]:
    with serve(*defects) as url:
        manifest = parse_manifest({**MANIFEST, "timeout": 1.0}, url)
        if "unknown known" in defects:
            missing = [*MANIFEST["flags"], {"key": "missing", "value": True}]
            manifest = parse_manifest({**MANIFEST, "flags": missing}, url)
        return {result.check.id: result for result in run_checks(manifest, only)}


def test_right_server_passes_every_check_that_applies() -> None:
    results = run_against()

    assert results.keys() == CHECKS.keys()
    wrong = {name: found for name, found in results.items() if found.verdict != Verdict.PASSED}
    assert {name: found.verdict for name, found in wrong.items()} == {
        "http.retry-after": Verdict.SKIPPED
    }


def test_server_with_a_limit_and_a_date_passes() -> None:
    only = ("http.retry-after", "http.concurrent")

    results = run_against("limited", only=only)

    assert {name: found.verdict for name, found in results.items()} == dict.fromkeys(
        only, Verdict.PASSED
    )


@pytest.mark.parametrize(("defect", "check_id"), DEFECTS)
def test_server_with_a_defect_fails_its_check(defect: str, check_id: str) -> None:
    result = run_against(defect, only=(check_id,))[check_id]

    is_optional = CHECKS[check_id].level is Level.MAY
    assert result.verdict == (Verdict.NOT_OFFERED if is_optional else Verdict.FAILED)
    assert result.details


def test_every_check_is_tried_with_a_defect() -> None:
    assert {check_id for _, check_id in DEFECTS} == CHECKS.keys()
