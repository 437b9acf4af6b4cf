"""A client that polls without pause, and prints each version with the time it arrived.

Run as a process of its own: `python -m bench.poller PORT TOKEN`. Its lines have the format of
`bench.listeners`. Ends on a signal, or after `MAX_SECONDS`.
"""

import json
import sys
import time
from http.client import HTTPConnection

from .servers import HOST

MAX_SECONDS = 300


def poll(port: int, token: str) -> None:
    connection = HTTPConnection(HOST, port, timeout=10)
    headers = {"Authorization": f"Bearer {token}"}
    deadline = time.monotonic() + MAX_SECONDS
    while time.monotonic() < deadline:
        connection.request("GET", "/api/v1/snapshot", headers=headers)
        response = connection.getresponse()
        response.read()
        if response.status == 200:
            headers["If-None-Match"] = response.headers["ETag"]
            version = int(response.headers["Switchgear-Version"])
            print(json.dumps({"version": version, "moments": [time.monotonic_ns()]}), flush=True)


if __name__ == "__main__":
    poll(int(sys.argv[1]), sys.argv[2])
