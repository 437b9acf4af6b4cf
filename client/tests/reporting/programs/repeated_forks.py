"""Forks again and again while its threads use all that has a lock.

Says how many children did not end well, and how.
"""

import logging
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress

from switchgear import from_env

FORKS, AT_ONCE, MAX_SECONDS = 200, 8, 30

gear = from_env()
available = gear.sli("core-availability")
ended = threading.Event()


class Locked(logging.Handler):
    """Has a lock, as all of them.

    A file's buffer has one too, which Python leaves held in a child that ends as this one does.
    """

    def emit(self, record):
        time.sleep(0)


def ask(thread):
    number = 0
    while not ended.is_set():
        number += 1
        gear.allowed(feature="chat")
        gear.allowed(segment=f"s{thread}.{number % 5000}")
        available.good()
        gear.sli(f"slo-{number % 2000}").bad()
        gear.status()
        logging.getLogger("switchgear").info("%s", number)
        if not number % 50:
            time.sleep(0.001)


def sockets():
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return {one for one in found if one.startswith("socket:")}


def in_child(number, inherited):
    """Check in a child that everything works at once and nothing of the parent's stays open."""
    assert not sockets() & inherited
    assert gear.allowed(feature="chat") is False
    assert gear.allowed(segment="any") is True
    available.good()
    assert available.get_counts() == (1, 1)
    assert gear.status().instance.endswith(f"-{os.getpid()}")
    gear.on_change(print)()
    if number % 4 == 0:
        gear.close(0.2)
    if number % 4 == 1:
        sys.exit(0)  # With all that an interpreter does in the end.
    os._exit(0)


def reap(children, deadline):
    codes = []
    while children and time.monotonic() < deadline:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            children.discard(pid)
            codes.append(os.waitstatus_to_exitcode(status))
        else:
            time.sleep(0.005)
    for pid in children:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        codes.append("hung")
    children.clear()
    return codes


def main():
    logging.basicConfig(handlers=[Locked()], level=logging.INFO)
    assert gear.wait_ready(30)
    # Callbacks make a third thread.
    gear.on_change(lambda change: None)
    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    for batch in range(FORKS // AT_ONCE):
        children = set()
        for number in range(AT_ONCE):
            open_here = sockets()
            pid = os.fork()
            if not pid:
                ended.set()
                try:
                    in_child(batch * AT_ONCE + number, open_here)
                except Exception:
                    traceback.print_exc()
                    os._exit(3)
            children.add(pid)
        codes += reap(children, time.monotonic() + MAX_SECONDS)
    ended.set()
    gear.close(1)
    print(len(codes), [code for code in codes if code], flush=True)


if __name__ == "__main__":
    main()
