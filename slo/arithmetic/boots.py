"""The boots of one source, and what samples of them add to what was counted. Pure.

What is counted depends on which samples there are, never on the order in which they came: a sample
between two known ones is put where it belongs, and what was counted across it is taken away.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from .increments import MAX_STEP, Increment, Sample, increment_between, increment_from_zero

PRESENCE_BOOT = "(times)"
"""The boot of a source whose events are told otherwise: its samples only say that it was there."""
MicrosSpan = tuple[int, int]


@dataclass
class Boot:
    """What is known of one boot around the time in question: its `samples`, in order.

    `first` is when the very first of all was taken, `counted_from` since when that one counted from
    zero (None: it is what is counted from), `started` when the boot itself said that it began.
    """

    samples: list[Sample] = field(default_factory=list)
    first: int | None = None
    counted_from: int | None = None
    started: int | None = None

    def growths(self) -> list[Increment]:
        """Each step between two samples that are known."""
        steps = [increment_between(*pair) for pair in pairwise(self.samples)]
        is_whole = bool(self.samples) and self.samples[0].at == self.first
        if is_whole and self.counted_from is not None:
            steps.insert(0, increment_from_zero(self.counted_from, self.samples[0]))
        return steps


@dataclass(frozen=True)
class MergeResult:
    """`added` growth and what is `removed` for it, `spans` that are covered now, and the boots as
    they stand. `new` are the samples that were news, by boot; all others were known."""

    added: list[Increment]
    removed: list[Increment]
    spans: list[MicrosSpan]
    boots: dict[str, Boot]
    new: dict[str, list[Sample]]


def merge_samples(
    boots: Mapping[str, Boot],
    told: Mapping[str, Iterable[Sample]],
    started: Mapping[str, int],
) -> MergeResult:
    """Put samples where they belong. `boots` are those known of the source, with their samples from
    the last one before to the first one after; `started` has when some say that they began.

    Of two samples of one moment the larger one stands. Whatever is known of a boot that began
    before any sample of another one of this source, it counts from zero; else from its first.
    """
    after: dict[str, Boot] = {}
    new: dict[str, list[Sample]] = {}
    for name, samples in told.items():
        known = boots.get(name) or Boot()
        news = _new_samples(known.samples, samples)
        began = _earliest(known.started, started.get(name))
        if news or began != known.started:
            after[name] = _extended(known, news, began)
            new[name] = news
    _find_bases(boots, after, new)
    everything = {**boots, **after}
    changed = [name for name, boot in everything.items() if boots.get(name) != boot]
    before = Counter(step for name in changed if name in boots for step in boots[name].growths())
    now = Counter(step for name in changed for step in everything[name].growths())
    return MergeResult(
        added=[*(now - before).elements()],
        removed=[*(before - now).elements()],
        spans=_spans(everything, new),
        boots=everything,
        new=new,
    )


def _new_samples(known: list[Sample], told: Iterable[Sample]) -> list[Sample]:
    """Those that say what is not known yet, in order, one for each moment."""
    by_time = {sample.at: sample for sample in known}
    news: dict[int, Sample] = {}
    for sample in told:
        there = by_time.get(sample.at)
        if there is None or (sample.total, sample.good) > (there.total, there.good):
            by_time[sample.at] = news[sample.at] = sample
    return [news[at] for at in sorted(news)]


def _extended(known: Boot, news: list[Sample], started: int | None) -> Boot:
    first = known.first
    if news:
        first = _earliest(first, news[0].at)
    if not known.samples or (news and news[0].at > known.samples[-1].at):
        samples = [*known.samples, *news]
    else:
        by_time = {sample.at: sample for sample in (*known.samples, *news)}
        samples = [by_time[at] for at in sorted(by_time)]
    return Boot(samples, first, known.counted_from, started)


def _find_bases(
    boots: Mapping[str, Boot], after: dict[str, Boot], new: Mapping[str, list[Sample]]
) -> None:
    """From when each first sample counts from zero, after what is new. None of a boot's own samples
    is before its first: so any that is before that is of another one."""
    everything = {**boots, **after}
    times = _times((name, boot.samples) for name, boot in everything.items())
    for name, boot in after.items():
        if boot.first is None or name == PRESENCE_BOOT:
            continue
        if boot.started is not None:
            boot.counted_from = min(boot.started, boot.first)
        elif name not in boots or boot.first != boots[name].first:
            own = boot.counted_from  # After one that is forgotten since.
            known = own if own is not None and own < boot.first else None
            boot.counted_from = _latest(known, _last_before(times, boot.first))
    times = _times(new.items())
    for name, boot in boots.items():
        there = after.get(name, boot)
        if name == PRESENCE_BOOT or there.first is None or there.first != boot.first:
            continue
        if there.started is None:
            latest = _latest(there.counted_from, _last_before(times, there.first))
            if latest != there.counted_from:
                after[name] = Boot(there.samples, there.first, latest, None)


def _times(samples: Iterable[tuple[str, list[Sample]]]) -> list[int]:
    return sorted(sample.at for name, some in samples if name != PRESENCE_BOOT for sample in some)


def _last_before(times: list[int], at: int) -> int | None:
    place = bisect_left(times, at)
    return times[place - 1] if place else None


def _spans(boots: Mapping[str, Boot], new: Mapping[str, list[Sample]]) -> list[MicrosSpan]:
    """What is covered around the new samples: from one of the source to the next, whatever boot
    they are of, and from when a boot began to its first sample after that, where that is short."""
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
