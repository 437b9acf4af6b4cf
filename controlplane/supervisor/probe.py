"""Waits until the web process responds with 200: `python -m … URL HOST SECONDS`."""

import http.client
import sys
import time
from urllib.parse import urlsplit


def wait_until_ready(url: str, host: str, seconds: float) -> str | None:
    """Wait until `url` responds with 200; return None, or the last problem after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        problem = send_request(url, host)
        if problem is None or time.monotonic() > deadline:
            return problem
        time.sleep(0.1)


def send_request(url: str, host: str) -> str | None:
    """Send a GET request with the Host header `host`; return None for a 200, else the problem."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)
    try:
        headers = {"Host": host, "X-Forwarded-Proto": "https"}
        connection.request("GET", parts.path, headers=headers)
        response = connection.getresponse()
        if response.status == 200:
            return None
        return f"{response.status} {response.read(500).decode(errors='replace')}"
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()


if __name__ == "__main__":
    last_problem = wait_until_ready(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    if last_problem is not None:
        sys.exit(last_problem)
