"""Has a client do its work, and says which modules were imported only then."""

import sys
import time

from switchgear import from_env

before = set(sys.modules)
gear = from_env()
heard = []
gear.on_change(heard.append)
gear.sli("core-availability").good()
by = time.monotonic() + 30
while not heard and time.monotonic() < by:
    time.sleep(0.01)
assert gear.allowed(feature="search") is False
gear.close(10)
print(sorted(set(sys.modules) - before))
