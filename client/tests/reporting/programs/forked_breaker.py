"""Opens a breaker, forks, and opens it again in the child. Each says how it stands, as JSON."""

import json
import os
import time

from switchgear import BreakerParameters, from_env

NAME = "core->oracle"

gear = from_env()
policy = gear.policy(NAME, breaker=BreakerParameters(failure_count=1))


def trip():
    policy.breaker.fail(policy.breaker.admit(), TimeoutError())


def wait_for(version):
    until = time.monotonic() + 20
    while gear.status().config_version != version and time.monotonic() < until:
        time.sleep(0.01)


def say(who, before):
    """The state at the beginning, and what is known in the end."""
    print(
        json.dumps(
            {
                "who": who,
                "instance": gear.status().instance,
                "before": before,
                "failures": policy.counters.counted()["timeout"],
                "timeout_seconds": policy.timeout_seconds,
            }
        ),
        flush=True,
    )


wait_for(2)
trip()
child = os.fork()
before = policy.breaker.state
if child == 0:
    trip()
    wait_for(3)  # What it was born with does not say that it asks.
    say("child", before)
    gear.close()
    os._exit(0)
os.waitpid(child, 0)
wait_for(3)
say("parent", before)
gear.close()
