"""A service with the client library, as a process: `python -m controlplane.tests.chaos.service`.

Takes the URL as its argument and the token from `SWITCHGEAR_TOKEN`. Prints a JSON line per decision
until its standard input is closed.
"""

import itertools
import json
import os
import sys
import threading
import time

from controlplane.tests.chaos.writers import SWITCHES
from switchgear import Switchgear

PAUSE_SECONDS = 0.05


def main() -> None:
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    turns = itertools.count()
    token = os.environ["SWITCHGEAR_TOKEN"]
    with Switchgear(sys.argv[1], token, service="chaos", state_dir=None) as gear:
        while not ended.wait(PAUSE_SECONDS):
            turn = next(turns)
            switch, targeting_key = SWITCHES[turn % len(SWITCHES)], f"u{turn}"
            scope, _, key = switch.partition(":")
            asked = {"feature": key} if scope == "feature" else {"experiments": key}
            decision = gear.check(**asked, targeting_key=targeting_key)
            if decision.known:
                line = [time.time(), decision.version, switch, targeting_key, decision.allowed]
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
