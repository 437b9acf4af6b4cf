"""Watching for as long as somebody looks: by a socket, and by asking where there is none."""

import json
import random
import time
from collections.abc import Iterable
from typing import Any

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.live import socket
from switchgear.cli.live.board import Board

LOOK_SECONDS = 1.0
SOCKET_AGAIN_SECONDS = 60.0
"""Where sockets are refused: how long until the next is tried."""
STEADY_SECONDS = 10.0
"""A socket that ends sooner was of no use: the next one is tried later."""
MAX_PAUSE_SECONDS = 30.0


class Follower:
    def __init__(self, call: Call, board: Board) -> None:
        self._call = call
        self._board = board
        self._stream: str | None = None
        self._seq: dict[str, int | None] = {}
        self._intervals = call.intervals
        self._pause = self._intervals.reconnect
        self._said = ""
        self._unread: set[str] = set()
        """Topics of which something was missed, and that could not be read anew yet."""
        self._tried = 0.0

    def run(self, *, sockets: bool = True) -> None:
        """Without an end; raises :class:`exits.Ended` if it can't even begin, or may not."""
        began = False
        while True:
            try:
                if not sockets:
                    raise socket.Refused("asking every 5 s, as you wished")
                with socket.opened(self._call.console) as opened:
                    began = True
                    self._follow(opened)
            except socket.Lost as lost:
                if not began:
                    self._board.refetch()
                    began = True
                self._tell(str(lost))
                self._meanwhile(isinstance(lost, socket.Refused))

    def _follow(self, opened: Any) -> None:
        """One socket, to its end."""
        began = heard = time.monotonic()
        live = True
        while True:
            message = socket.receive(opened, min(LOOK_SECONDS, self._intervals.poll))
            now = time.monotonic()
            if now - began > STEADY_SECONDS:
                self._pause = self._intervals.reconnect
            if message is None and now - heard > socket.QUIET_SECONDS:
                raise socket.Lost("nothing comes any more")
            if message is not None:
                heard = now
                live = bool(message.get("live", live))
                self._heard(opened, message)
            if now - self._tried > self._intervals.poll and (self._unread or not live):
                # Where it is not live, the console's process does not hear of changes just now.
                self._refetch([] if live else self._board.topics)

    def _heard(self, opened: Any, message: dict[str, Any]) -> None:
        try:
            if message.get("topic") == "hello":
                self._greeted(opened, message)
            else:
                self._take(message)
        except exits.STRANGE:
            raise socket.Lost("a message is none of this API's") from None

    def _greeted(self, opened: Any, hello: dict[str, Any]) -> None:
        """Where each topic stands. Whatever came before is read anew."""
        offered = hello["seq"]
        missing = [topic for topic in self._board.topics if topic not in offered]
        if missing and self._board.chosen:
            said = f"This token may not watch {', '.join(missing)}."
            raise exits.ended(exits.NO_RIGHTS, "no-topic", said)
        self._board.topics = [topic for topic in self._board.topics if topic in offered]
        if not self._board.topics:
            raise exits.ended(exits.NO_RIGHTS, "no-topic", "This token may not watch anything.")
        if missing:
            self._call.screen.note(f"Without {', '.join(missing)}: this token may not watch it.")
        if hello["stream"] != self._stream and set(offered) != set(self._board.topics):
            opened.send(json.dumps({"subscribe": self._board.topics}))
        self._stream, self._seq = hello["stream"], dict(offered)
        self._refetch(self._board.topics)

    def _take(self, message: dict[str, Any]) -> None:
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
        self._board.take(message)

    def _meanwhile(self, refused: bool) -> None:
        """Until a socket is tried again: ask, if there will be none soon."""
        self._stream = None
        least = min(0.1, self._pause)
        until = time.monotonic() + random.uniform(least, self._pause)  # noqa: S311 - no secret
        self._pause = min(self._pause * 2, MAX_PAUSE_SECONDS)
        if refused:
            until = time.monotonic() + SOCKET_AGAIN_SECONDS
        while (left := until - time.monotonic()) > 0:
            poll = self._intervals.poll * random.uniform(0.8, 1.2)  # noqa: S311
            time.sleep(min(left, poll))
            if refused:
                self._refetch(self._board.topics)

    def _refetch(self, topics: Iterable[str]) -> None:
        """Read these anew, and those that could not be read before. What can't be read now is read
        later; bad credentials end it."""
        self._unread.update(topics)
        self._tried = time.monotonic()
        for topic in [one for one in self._board.topics if one in self._unread]:
            try:
                self._board.refetch([topic])
            except exits.Ended as end:
                if end.code == exits.NO_RIGHTS:
                    raise
                self._tell(str(end))
                return
            except exits.STRANGE:
                self._tell(str(self._call.console.strange()))
                return
            self._unread.discard(topic)
        if self._said and self._stream is not None:
            self._tell("")

    def _tell(self, said: str) -> None:
        """Once for each trouble, and once when it is over."""
        if said != self._said:
            self._call.screen.note(f"Not live: {said.rstrip('.')}." if said else "Live again.")
        self._said = said
