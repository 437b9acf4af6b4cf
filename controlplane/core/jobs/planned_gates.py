"""Subjects of the gates that unfinished jobs plan, such as the SLOs of live ramps."""

from controlplane.core.jobs.models import Job, JobStep


def find_planned(field: str) -> dict[str, str]:
    """Return the values of a gate's field, such as `slo`, with the subject of a job that names it.

    Ramps whose approval is pending count; passed steps do, too.
    """
    steps = JobStep.objects.filter(job__state__in=Job.LIVE, data__has_key="gates")
    rows = steps.order_by("job_id").values_list("job__subject", "data__gates")
    return {gate[field]: subject for subject, gates in rows for gate in gates if field in gate}
