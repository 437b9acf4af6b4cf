"""One version of the snapshot, with all that can be made once instead of at every request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from switches.snapshot import Entry, Publication, render

Header = tuple[bytes, bytes]

JSON = (b"content-type", b"application/json")
NO_CACHE = (b"cache-control", b"no-cache")


@dataclass(frozen=True, slots=True)
class Copy:
    """The document's bytes, its entries by switch id, and the headers that go with it.

    `validators` belong to 200 and 304 alike, `description` to 200 only. `event` is the document as
    streams send it.
    """

    publication: Publication
    entries: Mapping[str, Entry]
    body: bytes
    event: bytes
    etag: bytes
    validators: tuple[Header, ...]
    description: tuple[Header, ...]

    @classmethod
    def of(cls, publication: Publication, entries: Iterable[Entry]) -> "Copy":
        """Render `entries` as `publication`."""
        by_id = {entry.id: entry for entry in entries}
        body = render(publication, by_id.values())
        etag = publication.etag.encode()
        mark = publication.mark.encode()
        return cls(
            publication=publication,
            entries=by_id,
            body=body,
            event=b"id: %b\nevent: snapshot\ndata: %b\n\n" % (mark, body),
            etag=etag,
            validators=(
                (b"etag", etag),
                (b"switchgear-version", str(publication.version).encode()),
                NO_CACHE,
            ),
            description=(JSON, (b"content-length", str(len(body)).encode())),
        )
