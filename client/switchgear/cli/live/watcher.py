"""Watching of the console by a live socket, or by polling where sockets are refused."""

import json
import random
import time
from collections.abc import Iterable
from typing import Any

from switchgear.cli import exits
from switchgear.cli.command_context import CommandContext
from switchgear.cli.live import live_socket
from switchgear.cli.live.topic_board import TopicBoard

RECEIVE_SECONDS = 1.0
SOCKET_RETRY_SECONDS = 60.0
"""Interval of attempts to open a socket while sockets are refused."""
STABLE_SECONDS = 10.0
"""Life of a socket below which the next pause before reopening is longer."""
MAX_PAUSE_SECONDS = 30.0


class Watcher:
    """A loop that keeps the known resources up to date by live messages, or else by polling."""

    def __init__(self, call: CommandContext, board: TopicBoard) -> None:
        self._call = call
        self._board = board
        self._stream: str | None = None
        self._seq: dict[str, int | None] = {}
        self._intervals = call.intervals
        self._pause = self._intervals.reconnect
        self._noted = ""
        self._unread: set[str] = set()
        """Topics that missed messages and could not be read again yet."""
        self._refetched_at = 0.0

    def run(self, *, sockets: bool = True) -> None:
        """Watch forever; with `sockets` False, only by polling.

        Raise :class:`exits.CommandExit` if the first attempt fails.
        """
        began = False
        while True:
            try:
                if not sockets:
                    raise live_socket.SocketRefused("polling every 5 s (--poll)")
                with live_socket.open_socket(self._call.console) as opened:
                    began = True
                    self._follow(opened)
            except live_socket.SocketLost as lost:
                if not began:
                    self._board.refetch()
                    began = True
                self._note_state(str(lost))
                self._poll_until_retry(isinstance(lost, live_socket.SocketRefused))

    def _follow(self, opened: Any) -> None:
        """Handle the messages of one socket until it is lost."""
        began = received_at = time.monotonic()
        live = True
        while True:
            message = live_socket.receive(opened, min(RECEIVE_SECONDS, self._intervals.poll))
            now = time.monotonic()
            if now - began > STABLE_SECONDS:
                self._pause = self._intervals.reconnect
            if message is None and now - received_at > live_socket.QUIET_SECONDS:
                raise live_socket.SocketLost("no message received for 45 s")
            if message is not None:
                received_at = now
                live = bool(message.get("live", live))
                self._handle(opened, message)
            if now - self._refetched_at > self._intervals.poll and (self._unread or not live):
                # While `live` is False, the console's process receives no changes itself.
                self._refetch([] if live else self._board.topics)

    def _handle(self, opened: Any, message: dict[str, Any]) -> None:
        try:
            if message.get("topic") == "hello":
                self._handle_hello(opened, message)
            else:
                self._handle_change(message)
        except exits.MISREAD_ERRORS:
            raise live_socket.SocketLost("received an unknown message") from None

    def _handle_hello(self, opened: Any, hello: dict[str, Any]) -> None:
        """Handle a socket's first message: store each topic's sequence number and refetch all."""
        offered = hello["seq"]
        missing = [topic for topic in self._board.topics if topic not in offered]
        if missing and self._board.chosen:
            problem = f"This token has no permission to watch {', '.join(missing)}."
            raise exits.make_exit(exits.NO_RIGHTS, "no-topic", problem)
        self._board.topics = [topic for topic in self._board.topics if topic in offered]
        if not self._board.topics:
            raise exits.make_exit(
                exits.NO_RIGHTS, "no-topic", "This token has no permission to watch any topic."
            )
        if missing:
            self._call.screen.note(
                f"Not watching {', '.join(missing)}: this token has no permission."
            )
        if hello["stream"] != self._stream and set(offered) != set(self._board.topics):
            opened.send(json.dumps({"subscribe": self._board.topics}))
        self._stream, self._seq = hello["stream"], dict(offered)
        self._refetch(self._board.topics)

    def _handle_change(self, message: dict[str, Any]) -> None:
        topic = message.get("topic")
        if topic not in self._board.topics:
            return
        if message.get("event") == "resync":
            self._seq[topic] = None
            self._refetch([topic])
            return
        seq, last = message["seq"], self._seq.get(topic)
        if last is not None and seq <= last:
            return
        self._seq[topic] = seq
        if last is not None and seq != last + 1:
            self._refetch([topic])
        self._board.handle_message(message)

    def _poll_until_retry(self, refused: bool) -> None:
        """Wait until it is time to open a socket again; poll meanwhile if sockets are `refused`."""
        self._stream = None
        least = min(0.1, self._pause)
        until = time.monotonic() + random.uniform(least, self._pause)  # noqa: S311 - no secret
        self._pause = min(self._pause * 2, MAX_PAUSE_SECONDS)
        if refused:
            until = time.monotonic() + SOCKET_RETRY_SECONDS
        while (left := until - time.monotonic()) > 0:
            poll = self._intervals.poll * random.uniform(0.8, 1.2)  # noqa: S311
            time.sleep(min(left, poll))
            if refused:
                self._refetch(self._board.topics)

    def _refetch(self, topics: Iterable[str]) -> None:
        """Refetch `topics`, and topics whose last refetch failed.

        A failure is printed as a note; only bad credentials raise :class:`exits.CommandExit`.
        """
        self._unread.update(topics)
        self._refetched_at = time.monotonic()
        for topic in [one for one in self._board.topics if one in self._unread]:
            try:
                self._board.refetch([topic])
            except exits.CommandExit as end:
                if end.code == exits.NO_RIGHTS:
                    raise
                self._note_state(str(end))
                return
            except exits.MISREAD_ERRORS:
                self._note_state(str(self._call.console.unexpected_answer()))
                return
            self._unread.discard(topic)
        if self._noted and self._stream is not None:
            self._note_state("")

    def _note_state(self, problem: str) -> None:
        """Print a note when a problem begins or changes, and when it ends (`problem` is empty)."""
        if problem != self._noted:
            state = (
                f"Live updates off: {problem.rstrip('.')}." if problem else "Live updates resumed."
            )
            self._call.screen.note(state)
        self._noted = problem
