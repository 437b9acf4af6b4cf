"""The data plane: what services poll, answered from memory by a thin ASGI application.

`app` runs alone (`manage.py dataplane`); the web process puts an
application of the same kind in front of Django. Either way it follows the database by itself.
"""

from controlplane.dataplane.application import Application
from controlplane.dataplane.plane import Plane

app = Application(Plane())
