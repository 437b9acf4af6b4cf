"""Ends without closing its clients: as many as it is told to have, by its first argument."""

import sys
import time

from switchgear import from_env

gears = [from_env(instance=f"i{number}") for number in range(int(sys.argv[1]))]
for gear in gears:
    gear.wait_ready(float(sys.argv[2]))
    gear.allowed(feature="chat")
print(time.time(), flush=True)
