from django.urls import URLPattern, path

from controlplane.core.http.routes import both_forms
from controlplane.core.jobs import api, views

api_urlpatterns: list[URLPattern] = [
    *both_forms("jobs/", api.JobList.as_view(), name="api-jobs"),
    *both_forms("jobs/<int:job_id>/", api.JobView.as_view(), name="api-job"),
    *both_forms("jobs/<int:job_id>/pause", api.PauseView.as_view(), name="api-job-pause"),
    *both_forms("jobs/<int:job_id>/resume", api.ResumeView.as_view(), name="api-job-resume"),
    *both_forms("jobs/<int:job_id>/cancel", api.CancelView.as_view(), name="api-job-cancel"),
]
urlpatterns: list[URLPattern] = [
    path("jobs/", views.jobs_page, {"template": "core/jobs.html"}, name="jobs_page"),
    path("jobs/rows/", views.jobs_page, {"template": "core/_jobs.html"}, name="jobs_rows"),
    *(
        path(f"jobs/<int:job_id>/{verb}/", views.intervene, {"verb": verb}, name=f"job_{verb}")
        for verb in ("pause", "resume", "cancel")
    ),
]
