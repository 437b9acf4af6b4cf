"""A parent and its children, by all the ways to have some.

Each child says in a line what it sees; the parent says what it sees in the end, and waits on its
input before it ends.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import time

from switchgear import from_env

gear = from_env()
heard = []
gear.on_change(heard.append, "feature:blink")


def ask_console():
    """Until the console has said that the search is stopped, and a change was told."""
    heard.clear()
    assert gear.wait_ready(30)
    by = time.monotonic() + 30
    while (gear.allowed(feature="search") or not heard) and time.monotonic() < by:
        time.sleep(0.01)
    for _ in range(7):
        gear.allowed(feature="chat")
    status = gear.status()
    said = {
        "pid": os.getpid(),
        "search": gear.allowed(feature="search"),
        "instance": status.instance,
        "source": status.source,
        "heard": bool(heard),
    }
    gear.close()
    print(json.dumps(said), flush=True)


def main():
    way = sys.argv[1]
    assert gear.wait_ready(30)
    for _ in range(5):
        gear.allowed(feature="chat")
    if way == "os":
        pid = os.fork()
        if not pid:
            ask_console()
            sys.exit(0)
        os.waitpid(pid, 0)
    elif way == "preexec":
        subprocess.run([sys.executable, "-c", "pass"], preexec_fn=lambda: None, check=True)
    else:
        child = multiprocessing.get_context(way).Process(target=ask_console)
        child.start()
        child.join()
    ask_console()


if __name__ == "__main__":
    main()
