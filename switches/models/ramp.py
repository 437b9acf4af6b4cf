"""Model of ramps, the data of jobs of kind `ramp`."""

from django.db import models
from django.db.models import Q

from controlplane.core.jobs.models import Job
from switches.models.switch import Episode, Switch


class Ramp(models.Model):
    """The staged release of a switch; state, step and lease are stored in its job.

    `plan` includes all defaults. `automatic` ramps started at the expiry of their episode.
    `overridden` lists safety rules that the release overrode. `blind_since` is the time since which
    a gate has had no data; data missing before the end of the step's dwell does not count.
    """

    job = models.OneToOneField(Job, on_delete=models.PROTECT, primary_key=True, related_name="ramp")
    switch = models.ForeignKey(Switch, on_delete=models.PROTECT, related_name="ramps")
    episode = models.ForeignKey(Episode, on_delete=models.PROTECT, related_name="ramps")
    plan = models.JSONField()
    justification = models.TextField()
    requested_by_type = models.CharField(max_length=8)
    requested_by_name = models.CharField(max_length=200)
    requested_by = models.ForeignKey(
        "core.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    automatic = models.BooleanField(default=False)
    overridden = models.JSONField(default=list)
    blind_since = models.DateTimeField(null=True, blank=True)
    live = models.BooleanField(default=True)
    """True until the job has finished; a switch has at most one live ramp."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["switch"], condition=Q(live=True), name="ramp_one_live")
        ]
        indexes = [models.Index(fields=["episode"], name="ramp_of_episode")]

    def __str__(self) -> str:
        return f"ramp {self.pk} of {self.switch_id}"
