"""Middleware that serves static files."""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # It has no types.
    """WhiteNoise's middleware, without streaming.

    Under ASGI, Django reads a file that WhiteNoise streams to its end before it sends the first
    byte, and warns about it.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]  # WhiteNoise's headers have one if there is content.
        for name, value in found.headers:
            response[name] = value
        return response
