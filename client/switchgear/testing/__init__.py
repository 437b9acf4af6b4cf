"""What the tests of a service need: a clock to wind on, a console in memory, switches engaged.

    from switchgear.testing import engaged

    def test_chat_says_when_it_is_stopped():
        with engaged("feature:chat", reason="a rehearsal"):
            assert ask("hello").status_code == 503

No threads, no network, no disk.
"""

from switchgear.testing.clock import FakeClock
from switchgear.testing.console import Console
from switchgear.testing.engaging import engaged

__all__ = ["Console", "FakeClock", "engaged"]
