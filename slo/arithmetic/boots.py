"""Merging of counter samples of one source across its restarts. Pure.

A boot is one run of the source, whose counters begin at zero. Samples may arrive in any order: a
late sample between two known ones splits their increment into two.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from .increments import MAX_STEP, Increment, Sample, increment_between

PRESENCE_BOOT = "(times)"
"""Pseudo-boot of a source that reports increments: its samples, all zero, prove presence."""
MicrosSpan = tuple[int, int]


@dataclass
class Boot:
    """One boot of a source, with those of its samples that were loaded, ascending by time.

    `first` is the time of the boot's first sample, loaded or not, and `started` the start time that
    the source reported. The counters were zero at `counted_from`; if that is None, events before
    the first sample are not counted. Times are in microseconds since 1970.
    """

    samples: list[Sample] = field(default_factory=list)
    first: int | None = None
    counted_from: int | None = None
    started: int | None = None

    def increments(self) -> list[Increment]:
        """Return the increments between samples, and before the first if `counted_from` is set."""
        steps = [increment_between(*pair) for pair in pairwise(self.samples)]
        is_whole = bool(self.samples) and self.samples[0].at == self.first
        if is_whole and self.counted_from is not None:
            first = self.samples[0]
            began = min(self.counted_from, first.at)
            steps.insert(0, Increment(began, first.at, first.good, first.total))
        return steps


@dataclass(frozen=True)
class MergeResult:
    """The outcome of :func:`merge_samples`: what changed by adding the new samples.

    The `added` increments replace the `removed` ones. `spans` are the time spans that count as
    covered by the new samples. `boots` maps boot names to all boots after the merge, `new` to the
    samples that were not stored before.
    """

    added: list[Increment]
    removed: list[Increment]
    spans: list[MicrosSpan]
    boots: dict[str, Boot]
    new: dict[str, list[Sample]]


def merge_samples(
    boots: Mapping[str, Boot], reported: Mapping[str, Iterable[Sample]], started: Mapping[str, int]
) -> MergeResult:
    """Return what changes when newly `reported` samples of one source are added to its boots.

    The arguments are by boot name: `boots` with their stored samples around the reported ones, the
    `reported` samples, and reported start times (`started`). Of two samples at the same time, the
    larger one is kept.

    A boot's counters were zero at its start time. If that is unknown, they were zero at the latest
    earlier sample of another boot; without one, events before the first sample do not count.
    """
    after: dict[str, Boot] = {}
    new: dict[str, list[Sample]] = {}
    for name, samples in reported.items():
        known = boots.get(name) or Boot()
        added_samples = _new_samples(known.samples, samples)
        began = _earliest(known.started, started.get(name))
        if added_samples or began != known.started:
            after[name] = _extend_boot(known, added_samples, began)
            new[name] = added_samples
    _find_bases(boots, after, new)
    all_boots = {**boots, **after}
    changed = [name for name, boot in all_boots.items() if boots.get(name) != boot]
    before = Counter(step for name in changed if name in boots for step in boots[name].increments())
    now = Counter(step for name in changed for step in all_boots[name].increments())
    return MergeResult(
        added=[*(now - before).elements()],
        removed=[*(before - now).elements()],
        spans=_covered_spans(all_boots, new),
        boots=all_boots,
        new=new,
    )


def _new_samples(known: list[Sample], reported: Iterable[Sample]) -> list[Sample]:
    by_time = {sample.at: sample for sample in known}
    added_samples: dict[int, Sample] = {}
    for sample in reported:
        current = by_time.get(sample.at)
        if current is None or (sample.total, sample.good) > (current.total, current.good):
            by_time[sample.at] = added_samples[sample.at] = sample
    return [added_samples[at] for at in sorted(added_samples)]


def _extend_boot(known: Boot, added_samples: list[Sample], started: int | None) -> Boot:
    first = known.first
    if added_samples:
        first = _earliest(first, added_samples[0].at)
    if not known.samples or (added_samples and added_samples[0].at > known.samples[-1].at):
        samples = [*known.samples, *added_samples]
    else:
        by_time = {sample.at: sample for sample in (*known.samples, *added_samples)}
        samples = [by_time[at] for at in sorted(by_time)]
    return Boot(samples, first, known.counted_from, started)


def _find_bases(
    boots: Mapping[str, Boot], after: dict[str, Boot], new: Mapping[str, list[Sample]]
) -> None:
    """Set the time at which each boot's counters were zero (`counted_from`), if it is known.

    It is the boot's start time or, if unknown, the latest earlier sample of another boot. Changed
    boots are put in `after`.
    """
    all_boots = {**boots, **after}
    times = _sample_times((name, boot.samples) for name, boot in all_boots.items())
    for name, boot in after.items():
        if boot.first is None or name == PRESENCE_BOOT:
            continue
        if boot.started is not None:
            boot.counted_from = min(boot.started, boot.first)
        elif name not in boots or boot.first != boots[name].first:
            own = boot.counted_from  # Set by a boot that was deleted since.
            known = own if own is not None and own < boot.first else None
            boot.counted_from = _latest(known, _last_before(times, boot.first))
    times = _sample_times(new.items())
    for name, boot in boots.items():
        current = after.get(name, boot)
        if name == PRESENCE_BOOT or current.first is None or current.first != boot.first:
            continue
        if current.started is None:
            latest = _latest(current.counted_from, _last_before(times, current.first))
            if latest != current.counted_from:
                after[name] = Boot(current.samples, current.first, latest, None)


def _sample_times(samples: Iterable[tuple[str, list[Sample]]]) -> list[int]:
    return sorted(sample.at for name, some in samples if name != PRESENCE_BOOT for sample in some)


def _last_before(times: list[int], at: int) -> int | None:
    place = bisect_left(times, at)
    return times[place - 1] if place else None


def _covered_spans(boots: Mapping[str, Boot], new: Mapping[str, list[Sample]]) -> list[MicrosSpan]:
    """Return the time spans next to new samples that count as covered by samples.

    These are spans of at most `MAX_STEP`, between successive samples of the source (even of
    different boots), or from a boot's reported start to its first sample.
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


def _earliest(*times: int | None) -> int | None:
    return min((at for at in times if at is not None), default=None)


def _latest(*times: int | None) -> int | None:
    return max((at for at in times if at is not None), default=None)
