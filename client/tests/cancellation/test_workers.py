"""Kill switches in frameworks that run functions elsewhere: graphs in threads, and tasks."""

import asyncio
import threading
from typing import Annotated, TypedDict

import pytest
from celery import Celery
from langgraph.graph import END, START, StateGraph

from switchgear import Retry, RetryParameters, SwitchEngaged
from switchgear.adapters.celery import PolicyTask
from switchgear.adapters.langgraph import node
from switchgear.testing import Console

SLOW = RetryParameters(attempts=3, base_seconds=60, cap_seconds=60)


class State(TypedDict):
    said: Annotated[list[str], lambda one, other: [*one, *other]]


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_node_that_backs_off_within_a_guarded_graph_is_refused(console, is_async):
    gear = console.client()
    calls = []

    def failing(state):
        calls.append(1)
        threading.Timer(0.05, console.engage, ("feature:chat",)).start()
        raise ConnectionError

    async def failing_later(state):
        failing(state)

    retry = Retry("llm", SLOW, rng=lambda: 1.0)
    graph = StateGraph(State)
    graph.add_node("llm", node(retry)(failing_later if is_async else failing))
    graph.add_edge(START, "llm")
    graph.add_edge("llm", END)
    compiled = graph.compile()

    @gear.guard(feature="chat")
    def run():
        if is_async:
            asyncio.run(asyncio.wait_for(compiled.ainvoke({"said": []}), 10))
        else:
            compiled.invoke({"said": []})

    with pytest.raises(SwitchEngaged):
        run()

    assert len(calls) == 1


def test_task_whose_switch_is_engaged_meanwhile_is_not_tried_again(console):
    app = Celery("eager", broker="memory://", backend="cache+memory://", set_as_current=False)
    app.conf.task_always_eager = True
    policy = console.client().policy(
        "worker->mail", feature="mail", retry=RetryParameters(attempts=3, base_seconds=0)
    )
    runs = []

    @app.task(base=PolicyTask, policy=policy, name="mail")
    def mail():
        runs.append(1)
        console.engage("feature:mail")
        raise ConnectionError

    result = mail.delay()

    assert isinstance(result.result, SwitchEngaged)
    assert len(runs) == 1
