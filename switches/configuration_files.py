"""Registration of the configuration files of switches, trip policies, drills and safety rules."""

from controlplane.core.configuration.readers import READERS, Reader
from switches.drills import configuration as drills
from switches.rules import configuration as rules
from switches.services import configuration as descriptions
from switches.trips import configuration as trips

READERS.register(
    Reader(
        name="trips",
        position=50,
        files=(trips.FILE,),
        load=trips.load_file,
        export=trips.export_documents,
        schemas=lambda: {trips.FILE: trips.build_schema()},
        kinds={"trip policy": "trip policies"},
    ),
    Reader(
        name="switches",
        position=60,
        files=(descriptions.FILE,),
        load=descriptions.load_file,
        export=descriptions.export_documents,
        schemas=lambda: {descriptions.FILE: descriptions.build_schema()},
        kinds={"switch": "switches"},
    ),
    Reader(
        name="drills",
        position=70,
        files=(drills.FILE,),
        load=drills.load_file,
        export=drills.export_documents,
        schemas=lambda: {drills.FILE: drills.build_schema()},
        kinds={"drill schedule": "drill schedules"},
    ),
    # Last, because a request for approval locks the audit trail.
    Reader(
        name="rules",
        position=80,
        files=(rules.FILE,),
        load=rules.load_file,
        export=rules.export_documents,
        schemas=lambda: {rules.FILE: rules.build_schema()},
        kinds={"rule": "rules"},
    ),
)
