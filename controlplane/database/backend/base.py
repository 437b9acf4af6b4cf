"""Django's PostgreSQL backend, with an error of its own for the commit of a terminated session."""

from django.db.backends.postgresql import base

from controlplane.core.ended_sessions import convert_termination


class DatabaseWrapper(base.DatabaseWrapper):
    def commit(self) -> None:
        """Commit; raise SessionEnded if the session was terminated before: it was rolled back."""
        with convert_termination():
            super().commit()
