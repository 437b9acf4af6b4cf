"""Texts of the results of each kind of gate."""

import pytest

from controlplane.core.gates import kinds

SLO = {"type": "slo", "slo": "shop", "window": "5m", "max_burn_rate": 1, "min_events": 100}
BURNING = {"slo": "shop", "window": "12 s", "good": 58, "total": 151, "burn_rate": 61.59}
BREAKER = {"type": "breaker", "dependency": "core->oracle"}
EXTERNAL = {"type": "external", "gate": "smoke"}
MANUAL = {"type": "manual", "timeout_seconds": 60}
SAMPLES = {"type": "samples", "slo": "shop", "min_events": 100}
STALE = "the last verdict is from 10:00"


@pytest.mark.parametrize(
    ("gate", "verdict", "evidence", "expected"),
    [
        (
            SLO,
            "fail",
            BURNING,
            "SLO shop: burn rate 61.6×, allowed 1× (58 of 151 events good in 12 s)",
        ),
        (SLO, "no_data", {**BURNING, "why": STALE}, f"SLO shop: {STALE}"),
        (SLO, "pass", {**BURNING, "good": 149, "burn_rate": 1.3, "why": "only 2 bad events"},
         "SLO shop: burn rate 1.3×, allowed 1× (149 of 151 events good in 12 s);"
         " only 2 bad events"),
        (SLO, "", {}, "SLO shop, burn rate over 5m at most 1"),
        (BREAKER, "pass", {"instances": 1, "closed": 1},
         "breaker core → oracle: closed in the only reporting instance"),
        (BREAKER, "fail", {"instances": 2, "closed": 1, "why": "open in 1 of 2 instances"},
         "breaker core → oracle: open in 1 of 2 instances"),
        (EXTERNAL, "pass", {"said": "ok", "by": "token:ci", "evidence": {"build": 412}},
         "external gate smoke: token:ci reported ok (412 build)"),
        (EXTERNAL, "pass", {}, "external gate smoke"),
        (MANUAL, "pass", {"approved_by": "kim", "comment": "looks fine"},
         "a person's approval: kim approved: looks fine"),
        (SAMPLES, "pass", {"seen": 100, "needed": 100},
         "at least 100 events of shop: 100 events since the step began"),
        (SAMPLES, "pass", {"seen": 1, "needed": 1},
         "at least 100 events of shop: 1 event since the step began"),
        (SLO, "pass", {**BURNING, "good": 1, "total": 1, "burn_rate": 0},
         "SLO shop: burn rate 0×, allowed 1× (1 of 1 event good in 12 s)"),
        ({"type": "gone"}, "no_data", {"why": "unknown gate type gone."},
         "gone: unknown gate type gone"),
    ],
)  # fmt: skip
def test_finding_of_a_gate_reads_as_a_result(gate, verdict, evidence, expected):
    assert kinds.describe_finding({**gate, "verdict": verdict, "evidence": evidence}) == expected
