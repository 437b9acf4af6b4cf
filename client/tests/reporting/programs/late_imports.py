"""Lets a client do its work, and prints the modules imported after its creation."""

import sys
import threading
import time

from switchgear import CircuitOpen, from_env

is_made = False
imported = []


def note(event, args):
    if event == "import" and (is_made or threading.current_thread() is not threading.main_thread()):
        imported.append(args[0])


sys.addaudithook(note)
gear = from_env()
is_made = True
heard = []
gear.on_change(heard.append)
gear.sli("core-availability").good()


@gear.policy("core->oracle", feature="chat", timeout_seconds=3, deadline_seconds=5)
def ask(error):
    raise error


for error in (ConnectionError("reset"), CircuitOpen("core->oracle")):
    try:
        ask(error)
    except type(error):
        pass
by = time.monotonic() + 30
while not heard and time.monotonic() < by:
    time.sleep(0.01)
assert gear.allowed(feature="search") is False
gear.status()
gear.close(10)
print(imported)
