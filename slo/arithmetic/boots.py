"""The boots of one source, and the increments that samples of them add. Pure.

The result depends only on which samples exist, never on the order in which they arrived: a sample
between two known ones is inserted there, and the increment that spanned it is removed.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from .increments import MAX_STEP, Increment, Sample, increment_between, increment_from_zero

PRESENCE_BOOT = "(times)"
"""The boot of a source whose events are reported as increments: its samples only prove presence."""
MicrosSpan = tuple[int, int]


@dataclass
class Boot:
    """The known state of one boot around a moment: its `samples`, in order.

    `first` is the time of the very first sample. That sample counts from zero since
    `counted_from`; if that is None, it is only a baseline. `started` is the start time that the
    boot itself reported.
    """

    samples: list[Sample] = field(default_factory=list)
    first: int | None = None
    counted_from: int | None = None
    started: int | None = None

    def increments(self) -> list[Increment]:
        """Return the increment between each two consecutive known samples."""
        steps = [increment_between(*pair) for pair in pairwise(self.samples)]
        is_whole = bool(self.samples) and self.samples[0].at == self.first
        if is_whole and self.counted_from is not None:
            steps.insert(0, increment_from_zero(self.counted_from, self.samples[0]))
        return steps


@dataclass(frozen=True)
class MergeResult:
    """The outcome of :func:`merge_samples`.

    `added` increments replace the `removed` ones, `spans` are now covered, and `boots` is the
    new state. `new` holds the samples that were not known before, by boot.
    """

    added: list[Increment]
    removed: list[Increment]
    spans: list[MicrosSpan]
    boots: dict[str, Boot]
    new: dict[str, list[Sample]]


def merge_samples(
    boots: Mapping[str, Boot],
    reported: Mapping[str, Iterable[Sample]],
    started: Mapping[str, int],
) -> MergeResult:
    """Insert samples of one source into its boots.

    `boots` are the known boots of the source, with their samples from the last one before the
    new ones to the first one after them. `reported` holds the samples by boot, `started` the
    start times that boots reported.

    Of two samples of one moment the larger one is kept. A boot that began after a sample of
    another boot of the source counts from zero; any other counts from its first sample.
    """
    after: dict[str, Boot] = {}
    new: dict[str, list[Sample]] = {}
    for name, samples in reported.items():
        known = boots.get(name) or Boot()
        fresh = _new_samples(known.samples, samples)
        began = _earliest(known.started, started.get(name))
        if fresh or began != known.started:
            after[name] = _extended(known, fresh, began)
            new[name] = fresh
    _find_bases(boots, after, new)
    everything = {**boots, **after}
    changed = [name for name, boot in everything.items() if boots.get(name) != boot]
    before = Counter(step for name in changed if name in boots for step in boots[name].increments())
    now = Counter(step for name in changed for step in everything[name].increments())
    return MergeResult(
        added=[*(now - before).elements()],
        removed=[*(before - now).elements()],
        spans=_spans(everything, new),
        boots=everything,
        new=new,
    )


def _new_samples(known: list[Sample], reported: Iterable[Sample]) -> list[Sample]:
    """Return the samples that are not known yet, in order, one for each moment."""
    by_time = {sample.at: sample for sample in known}
    fresh: dict[int, Sample] = {}
    for sample in reported:
        current = by_time.get(sample.at)
        if current is None or (sample.total, sample.good) > (current.total, current.good):
            by_time[sample.at] = fresh[sample.at] = sample
    return [fresh[at] for at in sorted(fresh)]


def _extended(known: Boot, fresh: list[Sample], started: int | None) -> Boot:
    first = known.first
    if fresh:
        first = _earliest(first, fresh[0].at)
    if not known.samples or (fresh and fresh[0].at > known.samples[-1].at):
        samples = [*known.samples, *fresh]
    else:
        by_time = {sample.at: sample for sample in (*known.samples, *fresh)}
        samples = [by_time[at] for at in sorted(by_time)]
    return Boot(samples, first, known.counted_from, started)


def _find_bases(
    boots: Mapping[str, Boot], after: dict[str, Boot], new: Mapping[str, list[Sample]]
) -> None:
    """Set since when each first sample counts from zero, given the new samples.

    No sample of a boot is before its first one, so any earlier sample is of another boot.
    """
    everything = {**boots, **after}
    times = _times((name, boot.samples) for name, boot in everything.items())
    for name, boot in after.items():
        if boot.first is None or name == PRESENCE_BOOT:
            continue
        if boot.started is not None:
            boot.counted_from = min(boot.started, boot.first)
        elif name not in boots or boot.first != boots[name].first:
            own = boot.counted_from  # Set by a boot that was deleted since.
            known = own if own is not None and own < boot.first else None
            boot.counted_from = _latest(known, _last_before(times, boot.first))
    times = _times(new.items())
    for name, boot in boots.items():
        current = after.get(name, boot)
        if name == PRESENCE_BOOT or current.first is None or current.first != boot.first:
            continue
        if current.started is None:
            latest = _latest(current.counted_from, _last_before(times, current.first))
            if latest != current.counted_from:
                after[name] = Boot(current.samples, current.first, latest, None)


def _times(samples: Iterable[tuple[str, list[Sample]]]) -> list[int]:
    return sorted(sample.at for name, some in samples if name != PRESENCE_BOOT for sample in some)


def _last_before(times: list[int], at: int) -> int | None:
    place = bisect_left(times, at)
    return times[place - 1] if place else None


def _spans(boots: Mapping[str, Boot], new: Mapping[str, list[Sample]]) -> list[MicrosSpan]:
    """Return the spans covered around the new samples, if they are short enough.

    A span lasts from one sample of the source to the next, whatever their boots, or from the
    start of a boot to its first sample after that.
    """
    times = sorted({sample.at for boot in boots.values() for sample in boot.samples})
    spans: set[MicrosSpan] = set()
    for samples in new.values():
        for sample in samples:
            place = bisect_left(times, sample.at)
            spans.update(pairwise(times[max(0, place - 1) : place + 2]))
    for name in new:
        boot = boots[name]
        if boot.started is not None:
            place = bisect_left(boot.samples, boot.started + 1, key=lambda sample: sample.at)
            if place < len(boot.samples):
                spans.add((boot.started, boot.samples[place].at))
    return sorted(span for span in spans if span[1] - span[0] <= MAX_STEP)


def _earliest(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def _latest(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)
