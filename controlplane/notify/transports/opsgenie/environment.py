"""The variable of the Opsgenie transport; if empty, Opsgenie's URL of the region is used."""

from controlplane.notify.transports.environment import url_reader

VARIABLES = ("OPSGENIE_API_URL",)
read = url_reader(*VARIABLES)
