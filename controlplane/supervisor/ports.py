"""Ports on the loopback interface: one for the web process, and free ones for embedded services."""

import contextlib
import random
import socket
import sys
import time

from controlplane.supervisor.failure import CannotRun

HOST = "127.0.0.1"
# Below the kernel's range for outgoing connections, which could occupy the port of a restarting
# service.
_SERVICE_PORTS = range(20_000, 32_000)


def reserve_port(port: int) -> socket.socket | None:
    """Bind `port`, so that only this run's web process can share it; return the bound socket.

    Return None on systems where a port can't be shared. Raises `CannotRun` if it is in use.
    """
    deadline = time.monotonic() + 0.6  # The last process of a killed run may be ending.
    while not is_free(port):
        if time.monotonic() > deadline:
            raise CannotRun(f"PORT: {HOST}:{port} is in use; set PORT to a free one", exit_code=2)
        time.sleep(0.1)
    if sys.platform != "linux":
        return None
    reservation = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    with contextlib.suppress(OSError):
        reservation.bind((HOST, port))
        return reservation
    reservation.close()
    return None


def is_free(port: int) -> bool:
    """Return True if the port is free; raise `CannotRun` if this user may not bind it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((HOST, port))
        except PermissionError as error:
            raise CannotRun(
                f"PORT: {port} requires privileges that this user lacks; set PORT to 1024 or more",
                exit_code=2,
            ) from error
        except OSError:
            return False
    return True


def pick_free() -> int:
    for _ in range(200):
        port = random.choice(_SERVICE_PORTS)  # noqa: S311 - not a secret
        if is_free(port):
            return port
    raise CannotRun(f"no free port on {HOST} for the embedded services")
