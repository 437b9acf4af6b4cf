"""Registration of the configuration files of switches, trip policies, drills and safety rules."""

from controlplane.core.configuration.readers import READERS, build_reader
from switches.drills import configuration as drills
from switches.rules import configuration as rules
from switches.services import configuration as descriptions
from switches.trips import configuration as trips

READERS.register(
    build_reader(trips, 50, {"trip policy": "trip policies"}),
    build_reader(descriptions, 60, {"switch": "switches"}),
    build_reader(drills, 70, {"drill schedule": "drill schedules"}),
    # Last, because a request for approval locks the audit trail.
    build_reader(rules, 80, {"rule": "rules"}),
)
