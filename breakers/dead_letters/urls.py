"""API URLs of dead letters."""

from django.urls import URLPattern

from controlplane.core.http.routes import both_forms

from .api import actions, archive, export, jobs, messages, outbox
from .converters import STREAM_NAME

# A stream's name may contain any characters, so the parts after it are matched from the end.
STREAM = f"dlq/streams/{STREAM_NAME}"
MESSAGE = f"{STREAM}/messages/<str:entry_id>"
JOB = "dlq/jobs/<int:job_id>"
FAILED = "dlq/outbox/<int:message_id>"
ARCHIVED = "dlq/archive/<int:departure_id>"

api_urlpatterns: list[URLPattern] = [
    *both_forms("dlq/", messages.Inbox.as_view(), name="api-dlq"),
    *both_forms(f"{MESSAGE}/retry", actions.RetryLetterView.as_view(), name="api-dlq-retry"),
    *both_forms(f"{MESSAGE}/discard", actions.DiscardLetterView.as_view(), name="api-dlq-discard"),
    *both_forms(f"{MESSAGE}/reveal", actions.RevealLetterView.as_view(), name="api-dlq-reveal"),
    *both_forms(f"{STREAM}/messages/", messages.MessageList.as_view(), name="api-dlq-messages"),
    *both_forms(f"{MESSAGE}/", messages.MessageDetail.as_view(), name="api-dlq-message"),
    *both_forms(f"{STREAM}/groups/", messages.GroupList.as_view(), name="api-dlq-groups"),
    *both_forms(f"{STREAM}/export", export.ExportView.as_view(), name="api-dlq-export"),
    *both_forms("dlq/jobs/", jobs.ReplayList.as_view(), name="api-dlq-jobs"),
    *both_forms(f"{JOB}/", jobs.ReplayView.as_view(), name="api-dlq-job"),
    *(
        route
        for verb, description in jobs.INTERVENTIONS.items()
        for route in both_forms(
            f"{JOB}/{verb}",
            jobs.build_intervention(verb, description).as_view(),
            name=f"api-dlq-job-{verb}",
        )
    ),
    *both_forms("dlq/outbox/", outbox.FailedList.as_view(), name="api-dlq-outbox"),
    *both_forms(f"{FAILED}/retry", outbox.RetryMessageView.as_view(), name="api-dlq-outbox-retry"),
    *both_forms(
        f"{FAILED}/discard", outbox.DiscardMessageView.as_view(), name="api-dlq-outbox-discard"
    ),
    *both_forms("dlq/archive/", archive.ArchiveList.as_view(), name="api-dlq-archive"),
    *both_forms(f"{ARCHIVED}/", archive.ArchivedView.as_view(), name="api-dlq-archived"),
    *both_forms(f"{ARCHIVED}/restore", archive.RestoreView.as_view(), name="api-dlq-restore"),
]
