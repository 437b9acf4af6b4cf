"""A provider that hangs: logs each request it gets to a file, and answers none of them.

python -m tests.cancellation.programs.provider LOG
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HANG_SECONDS = 120.0


class Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


def main(log: Path) -> None:
    lock, never = threading.Lock(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            with lock, log.open("a") as file:
                file.write(f"{self.path}\n")
            never.wait(HANG_SECONDS)

        def log_message(self, format: str, *args: object) -> None: ...

    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
