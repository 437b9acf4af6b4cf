"""URLs whose views fail on purpose."""

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import path
from rest_framework.exceptions import Throttled
from rest_framework.permissions import AllowAny
from rest_framework.views import APIView

from controlplane.core.errors import Conflict, TooManyRequests

handler400 = "controlplane.core.http.pages.bad_request"
handler403 = "controlplane.core.http.pages.permission_denied"
handler404 = "controlplane.core.http.pages.page_not_found"
handler500 = "controlplane.core.http.pages.server_error"

FAILURES = {
    "unforeseen": ZeroDivisionError("the password is hunter2"),
    "conflict": Conflict("Somebody was faster.", episode={"id": 1}),
    "slower": TooManyRequests("Slow down.", retry_after=7),
    "throttled": Throttled(wait=1.5),
    "missing": Http404("a secret path"),
    "denied": PermissionDenied("Not you."),
}


def fail(request, what):
    raise FAILURES[what]


class Failing(APIView):
    permission_classes = [AllowAny]
    authentication_classes = []

    def get(self, request, what):
        raise FAILURES[what]


urlpatterns = [
    path("api/plain/<str:what>", fail),
    path("api/<str:what>", Failing.as_view()),
    path("page/<str:what>", fail),
]
