"""A busy service, as a process of its own: asks all the time, and says how long that took.

Reads seconds from its input, line by line; works for so long, and prints a line of JSON.
"""

import json
import resource
import sys
import threading
import time
from typing import Any

from switchgear import Switchgear

URL, TOKEN = sys.argv[1:3]
raised: list[Any] = []
threading.excepthook = raised.append


def rss_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(gear: Switchgear, seconds: float) -> dict[str, Any]:
    took, allowed, clock = [], set(), time.perf_counter_ns
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(1000):
            began = clock()
            answer = gear.allowed(feature="chat")
            took.append(clock() - began)
            allowed.add(answer)
        del took[:-2_000_000]
    took.sort()
    status = gear.status()
    return {
        "p99_us": took[len(took) * 99 // 100] / 1000,
        "allowed": sorted(allowed),
        "rss_bytes": rss_bytes(),
        "error": status.error,
        "way": status.way,
        "raised": len(raised),
    }


with Switchgear(URL, TOKEN, service="core", state_dir=None) as gear:
    print(json.dumps({"ready": gear.wait_ready(20)}), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(gear, float(line))), flush=True)
