"""The files of a configuration folder, put together."""

from pathlib import Path

import pytest

from breakers.policies import configuration, policy
from breakers.policies.configuration import FILES
from controlplane.core.errors import InvalidInput

SHIPPED = Path(__file__).parents[2] / "config"


def shipped():
    return configuration.read_files({name: (SHIPPED / name).read_text() for name in FILES})


def wrong(**texts):
    with pytest.raises(InvalidInput) as caught:
        configuration.read_files({f"{name}.yaml": text for name, text in texts.items()})
    return caught.value.errors


TIMEOUTS = {
    "core->oracle": 60,
    "core->vision": 180,
    "core->synapse": 60,
    "core->weaver": 60,
    "event-log-worker->synapse": 60,
    "oracle->neo4j": 30,
    "oracle->openai": 30,
    "vision->postgresql": 30,
    "synapse->neo4j": 30,
    "weaver->mindsdb": 120,
}
CRITICALITIES = {
    "core->oracle": "high",
    "core->vision": "medium",
    "core->synapse": "medium",
    "core->weaver": "low",
    "event-log-worker->synapse": "medium",
    "oracle->neo4j": "critical",
    "oracle->openai": "high",
    "vision->postgresql": "critical",
    "synapse->neo4j": "critical",
    "weaver->mindsdb": "high",
}
# Failures, window, open, probes.
BREAKERS = {
    "core->oracle": (5, 60, 30, 1),
    "core->vision": (5, 60, 30, 1),
    "core->synapse": (5, 60, 30, 1),
    "core->weaver": (3, 60, 60, 1),
    "oracle->openai": (5, 60, 30, 1),
    "oracle->neo4j": (3, 30, 15, 1),
    "event-log-worker->synapse": (3, 60, 60, 1),
    "vision->openai": (5, 60, 30, 1),
}
GATEWAY = {
    "/api/v1/cases/**": 30,
    "/api/v1/process/**": 60,
    "/api/v1/agents/**": 120,
    "/api/v1/documents/**": 60,
    "/api/v1/watches/**": 30,
    "/api/v1/completion/**": 120,
    "/api/v1/vision/**": 180,
    "/api/v1/oracle/**": 60,
    "/api/v1/synapse/**": 60,
    "/api/v1/event-logs/**": 300,
    "/api/v1/process-mining/**": 180,
    "/api/v1/weaver/**": 60,
}


def test_shipped_policies_are_all_valid():
    written = shipped().dependencies

    checked = {
        name: policy.validate_policy({k: v for k, v in fields.items() if k != "on_outage"})
        for name, fields in written.items()
    }

    assert len(checked) > 20
    assert all(checked[name]["timeout_ms"] == written[name]["timeout_ms"] for name in TIMEOUTS)


def test_shipped_calls_have_their_timeout_and_criticality():
    dependencies = shipped().dependencies

    assert {name: dependencies[name]["timeout_ms"] // 1000 for name in TIMEOUTS} == TIMEOUTS
    assert {name: dependencies[name]["criticality"] for name in CRITICALITIES} == CRITICALITIES


def test_shipped_routes_to_synapse_and_through_the_gateway():
    dependencies = shipped().dependencies

    to_synapse = {r["pattern"]: r["timeout_ms"] for r in dependencies["core->synapse"]["routes"]}
    gateway = {
        r["pattern"]: r["timeout_ms"] // 1000 for r in dependencies["canvas->core"]["routes"]
    }
    assert to_synapse == {"/process-mining/**": 180_000, "/event-logs/**": 300_000}
    assert gateway == GATEWAY


def test_shipped_breakers_are_those_decided_and_no_others():
    found = {
        name: tuple(
            fields["breaker"][key]
            for key in ("failure_threshold", "window_seconds", "open_seconds", "half_open_calls")
        )
        for name, fields in shipped().dependencies.items()
        if fields.get("breaker")
    }

    assert found == BREAKERS


def test_shipped_messages_are_kept_in_the_users_language():
    dependencies = shipped().dependencies

    messages = {
        name: (dependencies[name]["fallback"]["code"], dependencies[name]["fallback"]["message"])
        for name in ("core->oracle", "core->vision", "core->synapse", "core->weaver")
    }
    assert messages == {
        "core->oracle": (
            "ORACLE_UNAVAILABLE",
            "자연어 쿼리를 일시적으로 사용할 수 없습니다",
        ),
        "core->vision": ("VISION_UNAVAILABLE", "분석 기능을 일시적으로 사용할 수 없습니다"),
        "core->synapse": ("SYNAPSE_UNAVAILABLE", "온톨로지 기능을 일시적으로 사용할 수 없습니다"),
        "core->weaver": ("WEAVER_UNAVAILABLE", "데이터 패브릭을 일시적으로 사용할 수 없습니다"),
    }


def test_shipped_workers_try_again_as_decided():
    retries = shipped().retries

    assert retries.keys() == {
        f"{name}-worker"
        for name in ("sync", "watch-cep", "ocr", "extract", "generate", "event-log")
    }
    assert {one["max_retries"] for one in retries.values()} == {3}
    backoffs = {name: (one["backoff"], one.get("delays_seconds")) for name, one in retries.items()}
    assert backoffs.pop("sync-worker") == ("linear", None)
    assert set(map(str, backoffs.values())) == {"('exponential', [2, 4, 8])"}


def test_shipped_infrastructure_flows_and_channels():
    folder = shipped()

    levels = {slug: folder.services[slug]["level"] for slug in ("postgresql", "redis", "neo4j")}
    assert levels == {"postgresql": 3, "redis": 2, "neo4j": 1}
    flows = [(one["stream"], one.get("group")) for one in folder.channels.values()]
    for flow in (
        ("axiom:events", "vision_group"),
        ("axiom:events", "synapse_group"),
        ("axiom:watches", "watch_cep_group"),
        ("axiom:workers", "worker_group"),
        ("axiom:process_mining", "synapse_mining_group"),
        ("axiom:process_mining", "canvas_mining_group"),
    ):
        assert flow in flows
    realtime = [one["stream"] for one in folder.channels.values() if one["kind"] == "realtime"]
    assert realtime == [
        "/agents/ws",
        "/api/v1/watches/stream",
        "/api/v1/events/stream",
        "/api/v1/workers/progress",
        "axiom:notifications:{tenant_id}",
    ]


def test_key_that_stands_twice_is_refused():
    errors = wrong(timeout="dependencies:\n  a->b: {timeout_ms: 1}\n  a->b: {timeout_ms: 2}\n")

    assert list(errors) == ["timeout.yaml"]
    assert "'a->b' is listed twice" in errors["timeout.yaml"][0]


def test_anchor_may_be_merged_and_overruled():
    text = "stages: {x: &x {impact: late}}\nchannels: {c: {<<: *x, impact: lost}}"

    folder = configuration.read_files({"services.yaml": text})

    assert folder.channels == {"c": {"impact": "lost"}}


@pytest.mark.parametrize(
    ("texts", "place"),
    [
        ({"timeout": "dependencies: ["}, "timeout.yaml"),
        ({"timeout": "- a"}, "timeout.yaml"),
        ({"timeout": "dependencys: {}"}, "timeout.yaml: dependencys"),
        ({"timeout": "dependencies: {Core->x: {}}"}, "timeout.yaml: Core->x"),
        ({"timeout": "dependencies: {a->b: 5}"}, "timeout.yaml: dependencies: a->b"),
        ({"timeout": "dependencies: {a->b: {timeout: 5}}"}, "timeout.yaml: a->b: timeout"),
        ({"timeout": "dependencies: {a->b: {breaker: {}}}"}, "timeout.yaml: a->b: breaker"),
        (
            {"timeout": "dependencies: {a->b: {}}", "breaker": "breakers: {a->c: {}}"},
            "breaker.yaml: breakers: a->c",
        ),
        ({"retry": "a: !!python/object/apply:os.system [ls]"}, "retry.yaml"),
        ({}, "folder"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(texts, place):
    assert list(wrong(**texts)) == [place]


def test_file_that_is_not_there_is_silent_on_its_fields():
    folder = configuration.read_files({"breaker.yaml": "breakers: {a->b: {open_seconds: 5}}"})

    assert {"timeout_ms", "retry", "bulkhead", "fallback", "on_outage"} <= folder.silent_on
    assert "breaker" not in folder.silent_on


def test_place_of_a_field_is_the_file_that_says_it():
    assert (
        configuration.locate_field("a->b", "breaker.open_seconds")
        == "breaker.yaml: a->b: open_seconds"
    )
    assert (
        configuration.locate_field("a->b", "routes.0.pattern")
        == "timeout.yaml: a->b: routes.0.pattern"
    )
    assert configuration.locate_field("a->b", "on_outage.switch") == "fallback.yaml: a->b: switch"


def test_ends_of_shipped_flows_that_go_to_workers_are_registered():
    folder = shipped()

    consumers = {
        one["consumer"] for one in folder.channels.values() if one["stream"] == "axiom:workers"
    }
    assert consumers == {"ocr-worker", "extract-worker", "generate-worker", "event-log-worker"}
    assert consumers <= folder.services.keys()


def test_shipped_providers_are_tried_in_the_order_decided_and_then_the_cache():
    chain = shipped().dependencies["oracle->openai"]["fallback"]["chain"]

    assert [hop.get("model") or hop.get("cache") or hop["error"] for hop in chain] == [
        "gpt-4o", "gpt-4o-mini", "claude", "local", "Query Node cache", "EXTERNAL_SERVICE_ERROR",
    ]  # fmt: skip
    assert [hop.get("provider") for hop in chain[:4]] == ["openai", "openai", "anthropic", "ollama"]
    assert chain[-1]["status"] == 502


def test_every_shipped_user_of_redis_has_its_fallback():
    dependencies = shipped().dependencies

    users = {name for name in dependencies if name.endswith("->redis")}
    assert users == {f"{caller}->redis" for caller in ("core", "oracle", "synapse", "weaver")}
    assert {dependencies[name]["fallback"]["mode"] for name in users} == {"default"}


def test_ownership_says_who_owns_and_nothing_else():
    errors = wrong(
        timeout="dependencies: {a->b: {timeout_ms: 5}}",
        breaker="ownership: {a->b: {owner: A, managed_by: b, timeout_ms: 1}}",
    )

    assert list(errors) == ["breaker.yaml: ownership: a->b: timeout_ms"]


def test_budgets_of_tokens_stand_beside_the_bulkheads():
    text = "budgets: {a->b: {tokens: 1000, window_seconds: 60, per_key_tokens: 100}}"

    folder = configuration.read_files({"bulkhead.yaml": text})

    assert policy.validate_policy(folder.dependencies["a->b"])["budget"] == {
        "tokens": 1000,
        "window_seconds": 60,
        "per_key_tokens": 100,
    }


def test_tier_of_this_folder_alone_gives_its_numbers_and_is_told():
    text = "tiers: {vip: {limit: 9, queue: 1}}\nbulkheads: {a->b: {tier: vip, queue: 2}}"

    folder = configuration.read_files({"bulkhead.yaml": text})

    assert folder.dependencies["a->b"]["bulkhead"] == {"limit": 9, "queue": 2}
    assert folder.remarks == (
        "bulkhead.yaml: the tier vip is defined only in this folder, so its numbers were copied.",
    )
    assert policy.validate_policy(folder.dependencies["a->b"])["bulkhead"]["limit"] == 9
