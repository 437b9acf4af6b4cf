"""The checks, by subject; importing this package registers them in order of execution."""

# isort: off
from . import single_evaluation as single_evaluation
from . import error_responses as error_responses
from . import credentials as credentials
from . import bulk_evaluation as bulk_evaluation
from . import validators as validators
from . import event_streams as event_streams
from . import provider_configuration as provider_configuration
from . import transport as transport
from . import cross_origin as cross_origin
