"""Wait until the web process has started: `python -m … URL HOST SECONDS`.

A separate child, so that a slow answer blocks nothing. Exits with 0 when the answer is 200, else
prints the last one.
"""

import http.client
import sys
import time
from urllib.parse import urlsplit


def wait_until_ready(url: str, host: str, seconds: float) -> str | None:
    """Return None once `url` answers 200; at the timeout, its last failure."""
    deadline = time.monotonic() + seconds
    while True:
        said = ask(url, host)
        if said is None or time.monotonic() > deadline:
            return said
        time.sleep(0.1)


def ask(url: str, host: str) -> str | None:
    """Send one request and return the problem; `host` is a name the application accepts."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)
    try:
        headers = {"Host": host, "X-Forwarded-Proto": "https"}
        connection.request("GET", parts.path, headers=headers)
        answer = connection.getresponse()
        if answer.status == 200:
            return None
        return f"{answer.status} {answer.read(500).decode(errors='replace')}"
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()


if __name__ == "__main__":
    last_answer = wait_until_ready(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    if last_answer is not None:
        sys.exit(last_answer)
