"""Ends supervised processes when their parent ends, even if it was killed by SIGKILL.

On Linux the kernel does it, by a setting of the child (PR_SET_PDEATHSIG). It applies to the
parent's *thread* that forked, and a change of user clears it. So the supervisor forks only from its
main thread, and a child sets it after changing the user. Elsewhere the child polls its parent.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

SUPERVISOR_PID = "SWITCHGEAR_SUPERVISOR_PID"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_prctl: Callable[[int, int], int] | None = None
if sys.platform == "linux":
    _prctl = ctypes.CDLL(None).prctl


def bind_to_parent(parent: int, orphan_signal: int) -> None:
    """Let the kernel send `orphan_signal` to this process when its `parent` ends."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, orphan_signal)
    if os.getppid() != parent:  # The parent ended before the call above.
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies, so that they can be ended, too."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """End this process when its parent process ends, if it runs under a supervisor."""
    if SUPERVISOR_PID not in os.environ:
        return
    forked_by = multiprocessing.parent_process()
    parent = forked_by.pid if forked_by is not None and forked_by.pid else os.getppid()
    if _prctl is not None:
        bind_to_parent(parent, signal.SIGKILL)
    else:
        threading.Thread(
            target=_exit_with_parent, args=(parent,), daemon=True, name="lifeline"
        ).start()


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
