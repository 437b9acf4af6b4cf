"""The pages of dead letters. A stream's name comes last: it may have any characters."""

from django.urls import path

from breakers.views.dead_letters import (
    addresses,
    bulk,
    changes,
    editing,
    inbox,
    jobs,
    letter,
    runbook,
    stream,
)

__all__ = ["addresses", "urlpatterns"]

ROOT = "dead-letters/"
# A dash is no part of a name that comes out of a pattern by accident.
ONE = f"{ROOT}<str:server>/-"
STREAM = f"{ROOT}<str:server>/<letter_stream:name>/"
LETTER = "<letter_id:entry_id>/<letter_stream:name>/"

urlpatterns = [
    path(ROOT, inbox.inbox_page, name="dead_letters_page"),
    path(f"{ROOT}jobs/<int:job_id>/", jobs.replay_page, name="replay_page"),
    path(
        f"{ROOT}archive/<int:departure_id>/",
        letter.archived_letter_page,
        name="archived_letter_page",
    ),
    path(f"{ROOT}archive/<int:departure_id>/restore/", changes.restore, name="letter_restore"),
    path(
        f"{ROOT}archive/<int:departure_id>/reveal/",
        changes.reveal_archived,
        name="archived_letter_reveal",
    ),
    path(f"{ONE}/letter/{LETTER}", letter.letter_page, name="letter_page"),
    path(f"{ONE}/retry/{LETTER}", changes.retry, name="letter_retry"),
    path(f"{ONE}/edit/{LETTER}", editing.edit, name="letter_edit"),
    path(f"{ONE}/discard/{LETTER}", changes.discard, name="letter_discard"),
    path(f"{ONE}/reveal/{LETTER}", changes.reveal, name="letter_reveal"),
    path(f"{ONE}/bulk/<letter_stream:name>/", bulk.bulk, name="letters_bulk"),
    path(
        f"{ROOT}<str:server>/<letter_stream:name>/", stream.stream_page, name="letter_stream_page"
    ),
    path("runbooks/dead-letters/", runbook.runbook_page, name="letters_runbook"),
]
