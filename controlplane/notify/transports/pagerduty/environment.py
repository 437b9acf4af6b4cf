"""The variable of the PagerDuty transport; if empty, PagerDuty's URL of the region is used."""

from controlplane.notify.transports.environment import url_reader

VARIABLES = ("PAGERDUTY_API_URL",)
read = url_reader(*VARIABLES)
