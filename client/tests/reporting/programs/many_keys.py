"""Asks for very many different keys, and says by how many MiB that has made it larger."""

import resource
import sys

from switchgear import from_env

KEYS = int(sys.argv[1])

gear = from_env()
assert gear.wait_ready(30)


def ask(keys):
    for number in keys:
        gear.allowed(feature=f"k{number}")
        gear.sli(f"slo-{number}").good()


def size():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


ask(range(20_000))
before = size()
ask(range(20_000, KEYS))
gear.close(10)
status = gear.status()
print(round(size() - before), status.dropped)
