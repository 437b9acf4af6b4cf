"""Tools for the tests of a service: engaged switches, a console in memory, and no waiting.

    from switchgear.testing import engaged

    def test_chat_says_when_it_is_stopped():
        with engaged("feature:chat", reason="a rehearsal"):
            assert ask("hello").status_code == 503

:func:`no_wait` skips every back-off; a :class:`FakeClock` passes time under the control of a test.
No threads, no network, no disk.
"""

from switchgear.testing.blocks import engaged, no_wait
from switchgear.testing.clock import FakeClock
from switchgear.testing.console import Console

__all__ = ["Console", "FakeClock", "engaged", "no_wait"]
