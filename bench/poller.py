"""A service that polls as fast as it can: prints each version it is told, with the moment.

Run as a process of its own: `python -m bench.poller PORT TOKEN SECONDS`. A line is
`<version> <nanoseconds of the system's monotonic clock>`.
"""

import sys
import time
from http.client import HTTPConnection

from bench.servers import HOST


def poll(port: int, token: str, seconds: float) -> None:
    connection = HTTPConnection(HOST, port, timeout=10)
    headers = {"Authorization": f"Bearer {token}"}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection.request("GET", "/api/v1/snapshot", headers=headers)
        response = connection.getresponse()
        response.read()
        if response.status == 200:
            headers["If-None-Match"] = response.headers["ETag"]
            print(response.headers["Switchgear-Version"], time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    poll(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
