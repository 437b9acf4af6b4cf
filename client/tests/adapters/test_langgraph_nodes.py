"""Nodes within patterns, in real graphs."""

import asyncio
import time
from typing import Annotated, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, interrupt

from switchgear.adapters.langgraph import node, retry_on, with_breaker, with_retry, with_timeout
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters, RetryParameters
from switchgear.patterns.timeout import CallTimeout
from switchgear.policies.policy import Policy
from switchgear.refusals import CircuitOpen


def joined(one, other):
    return [*one, *other]


class State(TypedDict):
    said: Annotated[list[str], joined]


def graph_of(*nodes, checkpointer=None, store=None, **terms):
    """`nodes` one after the other."""
    graph, before = StateGraph(State), START
    for n, each in enumerate(nodes):
        graph.add_node(f"n{n}", each, **terms)
        graph.add_edge(before, f"n{n}")
        before = f"n{n}"
    graph.add_edge(before, END)
    return graph.compile(checkpointer=checkpointer, store=store)


def policy(**more):
    retry = RetryParameters(attempts=3, base_seconds=0)
    return Policy(
        "graph->llm",
        retry=retry,
        breaker=BreakerParameters(failure_count=3),
        **more,
    )


def quick_breaker():
    return Breaker("graph->llm", BreakerParameters(failure_count=2))


def test_decorators_chain_around_a_coroutine_node():
    breaker, calls = Breaker("graph->llm"), []

    @with_timeout(30)
    @with_retry(3, (ConnectionError,), base_seconds=0)
    @with_breaker(breaker)
    async def llm(state: State) -> State:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError("away")
        return {"said": ["hello"]}

    assert asyncio.run(graph_of(llm).ainvoke({"said": []})) == {"said": ["hello"]}
    assert len(calls) == 3
    assert breaker.counters.counted()["failure"] == 2
    assert breaker.counters.counted()["success"] == 1


def test_timeout_cuts_a_node_off():
    @with_timeout(0.05)
    async def slow(state: State) -> State:
        await asyncio.sleep(30)
        return {"said": []}

    began = time.monotonic()
    with pytest.raises(CallTimeout):
        asyncio.run(graph_of(slow).ainvoke({"said": []}))
    assert time.monotonic() - began < 10


def test_open_breaker_gives_the_update_of_its_fallback():
    breaker, calls = quick_breaker(), []

    def cached(state):
        return {"said": ["cached"]}

    @with_breaker(breaker, fallback=cached)
    def llm(state: State) -> State:
        calls.append(1)
        raise ConnectionError("away")

    graph = graph_of(llm)
    for _ in range(4):
        assert graph.invoke({"said": []}) == {"said": ["cached"]}
    assert (breaker.state, len(calls)) == ("open", 2)
    assert breaker.counters.counted()["fallback"] == 4


@pytest.mark.parametrize("is_async", [False, True])
def test_interrupt_is_no_failure_and_the_graph_is_resumed(is_async):
    around, calls = policy(fallback=lambda state: {"said": ["wrong"]}), []

    def ask(state: State) -> State:
        calls.append(1)
        return {"said": [interrupt("may I?")]}

    async def ask_async(state: State) -> State:
        return ask(state)

    graph = graph_of(node(around)(ask_async if is_async else ask), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}

    async def both(given):
        return await graph.ainvoke(given, config) if is_async else graph.invoke(given, config)

    first = asyncio.run(both({"said": []}))
    assert first["__interrupt__"][0].value == "may I?"
    counted = around.counters.counted()
    assert set(counted.values()) == {0}
    assert len(calls) == 1

    assert asyncio.run(both(Command(resume="yes")))["said"] == ["yes"]
    assert len(calls) == 2
    assert around.counters.counted()["success"] == 1


def test_interrupt_gives_its_place_and_its_probe_back():
    now = [0.0]
    breaker = Breaker(
        "graph->llm",
        BreakerParameters(failure_count=1, open_seconds=1, open_jitter=0, half_open_calls=1),
        clock=lambda: now[0],
    )
    with pytest.raises(ConnectionError), breaker:
        raise ConnectionError("away")
    now[0] = 2.0

    @with_breaker(breaker)
    def ask(state: State) -> State:
        return {"said": [interrupt("may I?")]}

    graph = graph_of(ask, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    assert "__interrupt__" in graph.invoke({"said": []}, config)
    assert breaker.state == "half_open"
    assert graph.invoke(Command(resume="yes"), config)["said"] == ["yes"]
    assert breaker.state == "closed"


def test_handover_to_the_parent_graph_is_no_failure():
    around = policy()

    def leave(state: State):
        return Command(graph=Command.PARENT, goto="after", update={"said": ["left"]})

    inner = graph_of(node(around)(leave))
    graph = StateGraph(State)
    graph.add_node("inner", node(around)(lambda state: inner.invoke(state)))
    graph.add_node("after", lambda state: {"said": ["after"]})
    graph.add_edge(START, "inner")
    graph.add_edge("after", END)

    assert graph.compile().invoke({"said": []})["said"] == ["left", "after"]
    counted = around.counters.counted()
    assert (counted["failure"], counted["retry"]) == (0, 0)


def test_what_langgraph_injects_comes_as_before():
    injected = {}

    @node(policy())
    def plain(state: State, config: RunnableConfig, *, store: BaseStore) -> State:
        injected["thread"] = config["configurable"]["thread_id"]
        store.put(("seen",), "it", {"n": 1})
        return {"said": ["plain"]}

    @node(policy(bulkhead=BulkheadParameters(limit=1)), policy(timeout_seconds=20))
    async def coroutine(state: State, runtime: Runtime) -> State:
        injected["store"] = (await runtime.store.aget(("seen",), "it")).value
        return {"said": ["coroutine"]}

    graph = graph_of(plain, coroutine, store=InMemoryStore())
    config = {"configurable": {"thread_id": "t1"}}
    assert asyncio.run(graph.ainvoke({"said": []}, config))["said"] == ["plain", "coroutine"]
    assert injected == {"thread": "t1", "store": {"n": 1}}


def test_node_streams_from_within():
    @node(policy())
    async def stream(state: State) -> State:
        writer = get_stream_writer()
        for word in ("a", "b"):
            writer(word)
        return {"said": ["done"]}

    async def streamed():
        return [
            part
            async for part in graph_of(stream).astream(
                {"said": []}, stream_mode=["custom", "updates"]
            )
        ]

    assert asyncio.run(streamed()) == [
        ("custom", "a"),
        ("custom", "b"),
        ("updates", {"n0": {"said": ["done"]}}),
    ]


def test_node_is_tried_again_and_counted_and_refused_in_the_end():
    around, calls = policy(), []

    @node(around)
    def broken(state: State) -> State:
        calls.append(1)
        raise ConnectionError("away")

    with pytest.raises(ConnectionError):
        graph_of(broken).invoke({"said": []})
    with pytest.raises(CircuitOpen):
        graph_of(broken, retry_policy=RetryPolicy(retry_on=retry_on)).invoke({"said": []})
    assert len(calls) == 3
    assert around.counters.counted()["retry"] == 2
    assert around.counters.counted()["rejected"] == 1


def test_generator_node_suits_a_breaker():
    breaker = Breaker("graph->llm")

    @with_breaker(breaker)
    def parts(state: State):
        yield {"said": ["a"]}

    assert list(parts({"said": []})) == [{"said": ["a"]}]
    assert breaker.counters.counted()["success"] == 1
    with pytest.raises(TypeError, match="generator"):
        with_retry(3)(lambda: (yield))
