"""Forks while another thread holds every lock that the client has.

The child has to do all that a client can do; says how many locks there were, and how the child
ended.
"""

import os
import signal
import sys
import threading
import time
import traceback

from switchgear import from_env

LOCKS = (type(threading.Lock()), type(threading.RLock()))

gear = from_env()
available = gear.sli("core-availability")
gear.on_change(lambda change: None)


def locks_in(thing, seen):
    """Those of our own objects, of their events and conditions, and what they hold."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, LOCKS):
        yield thing
    elif isinstance(thing, dict):
        for value in list(thing.values()):
            yield from locks_in(value, seen)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from locks_in(value, seen)
    elif type(thing).__module__.startswith("switchgear") or isinstance(
        thing, threading.Event | threading.Condition
    ):
        yield from locks_in(getattr(thing, "__dict__", {}), seen)


def hold(locks, held, ended):
    for lock in locks:
        lock.acquire()
    held.set()
    ended.wait()
    for lock in locks:
        lock.release()


def in_child():
    assert gear.allowed(feature="search") is False
    assert gear.allowed(feature="never-asked-before")
    available.good()
    gear.sli("another").good()
    gear.on_change(print)()
    gear.status()
    assert gear.wait_ready(20)
    gear.close(5)
    os._exit(0)


def code_of(pid, seconds):
    by = time.monotonic() + seconds
    while time.monotonic() < by:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


def main():
    assert gear.wait_ready(30)
    if "closed" in sys.argv:
        gear.close(30)
    locks = list(locks_in(gear, set()))
    held, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold, args=(locks, held, ended), daemon=True)
    thread.start()
    assert held.wait(20)
    pid = os.fork()
    if not pid:
        try:
            in_child()
        except Exception:
            traceback.print_exc()
            os._exit(3)
    code = code_of(pid, 30)
    ended.set()
    print(len(locks), code, flush=True)


if __name__ == "__main__":
    main()
