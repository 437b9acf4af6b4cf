"""URLs of dead letter pages; a stream's name comes last, since it may contain any characters."""

from django.urls import path

from .converters import STREAM_NAME
from .views import bulk, changes, edit, inbox, jobs, letter, stream

ROOT = "dead-letters/"
ARCHIVED = f"{ROOT}archive/<int:departure_id>/"
# The dash separates these paths from those of streams, whose names never are a dash.
ONE = f"{ROOT}<str:server>/-"
STREAM = f"{ROOT}<str:server>/{STREAM_NAME}/"
LETTER = f"<letter_id:entry_id>/{STREAM_NAME}/"

urlpatterns = [
    path(ROOT, inbox.inbox_page, name="dead_letters_page"),
    path(f"{ROOT}jobs/<int:job_id>/", jobs.replay_page, name="replay_page"),
    path(ARCHIVED, letter.archived_letter_page, name="archived_letter_page"),
    path(f"{ARCHIVED}restore/", changes.restore_letter, name="letter_restore"),
    path(f"{ARCHIVED}reveal/", changes.reveal_archived, name="archived_letter_reveal"),
    path(f"{ONE}/letter/{LETTER}", letter.letter_page, name="letter_page"),
    path(f"{ONE}/retry/{LETTER}", changes.retry_letter, name="letter_retry"),
    path(f"{ONE}/edit/{LETTER}", edit.edit_letter, name="letter_edit"),
    path(f"{ONE}/discard/{LETTER}", changes.discard_letter, name="letter_discard"),
    path(f"{ONE}/reveal/{LETTER}", changes.reveal_letter, name="letter_reveal"),
    path(f"{ONE}/bulk/{STREAM_NAME}/", bulk.bulk_job_page, name="letters_bulk"),
    path(STREAM, stream.stream_page, name="letter_stream_page"),
]
