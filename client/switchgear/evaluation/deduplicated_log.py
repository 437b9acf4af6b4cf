"""Log lines about invalid keys and refused snapshots, each logged once, up to a limit per kind."""

import logging
from collections import defaultdict
from collections.abc import Collection
from typing import Literal

from switchgear.evaluation.decisions import SwitchQuery
from switchgear.evaluation.keys import KEY_TYPES
from switchgear.evaluation.scopes import ORDER

MAX_LINES = 20
"""Maximum number of log lines of each kind."""
MAX_SHOWN_SWITCHES = 5
"""Maximum number of switches named in one line."""

Kind = Literal["key", "type", "epoch"]

log = logging.getLogger("switchgear")


class DeduplicatedLog:
    """The log of one client: each line is logged once, or twice if two threads log it at once."""

    def __init__(self) -> None:
        self._logged: defaultdict[Kind, set[str]] = defaultdict(set)

    def wrong_question(self, query: SwitchQuery) -> None:
        """Log the values in `query` that are no valid keys.

        Strings are logged as warnings, since they may be user input; wrong types as errors, since
        they are bugs.
        """
        for key in query.invalid:
            if self._is_first("key", key):
                log.warning("switchgear: invalid key, so no switch can stop these calls: %s", key)
        for wrong in query.wrong_types:
            self._wrong_type(
                wrong,
                f"no switch can stop these calls, and they count as unknown: pass a {KEY_TYPES}",
            )

    def wrong_targeting_key(self, key: object, error: Exception) -> None:
        """Log that the conversion of a targeting key to text failed."""
        wrong = f"targeting_key of type {type(key).__name__:.100} raised {type(error).__name__}"
        self._wrong_type(wrong, f"these calls are decided at random: pass a {KEY_TYPES}")

    def released_by_epoch(
        self, stopped: Collection[str], released: Collection[str], before: str, after: str
    ) -> None:
        """Log that a new epoch of the console released the switches in `released`.

        `stopped` are all switches that were engaged or ramping before. `before` and `after`
        identify the old and the new snapshot, as `<epoch>.<version>`.
        """
        if not released:
            return
        is_all = len(released) == len(stopped)
        shown = sorted(released, key=lambda each: (ORDER[each.partition(":")[0]], each))
        more = len(shown) - MAX_SHOWN_SWITCHES
        log.log(
            logging.ERROR if is_all else logging.WARNING,
            "switchgear: a new epoch of the console releases %s switches that were engaged or"
            " ramping: %s%s (%s before, %s now); engage again what must stay stopped",
            f"all {len(stopped)}" if is_all else f"{len(released)} of {len(stopped)}",
            ", ".join(shown[:MAX_SHOWN_SWITCHES]),
            f" and {more} more" if more > 0 else "",
            *(before, after),
        )

    def left_epoch(self, epoch: str, present: str | None) -> None:
        """Log that a snapshot is refused because its `epoch` was replaced by a later one.

        `present` identifies the snapshot that stays in force, None if there is none.
        """
        if self._is_first("epoch", epoch):
            log.error(
                "switchgear: rejected a snapshot: its epoch %s was replaced by a later one; %s; if"
                " this console is the right one, begin a new epoch there",
                epoch,
                "no snapshot yet" if present is None else f"keeping {present}",
            )

    def _wrong_type(self, wrong: str, advice: str) -> None:
        if self._is_first("type", wrong):
            log.error("switchgear: %s; %s", wrong, advice)

    def _is_first(self, kind: Kind, what: str) -> bool:
        logged = self._logged[kind]
        if what in logged or len(logged) >= MAX_LINES:
            return False
        logged.add(what)
        return True
