"""Putting samples of a source where they belong: behind what is known of it, or in between."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slo.arithmetic import increments
from slo.arithmetic.boots import Boot, MergeResult, merge_samples
from slo.arithmetic.increments import Increment, minute_of

from . import series_store
from .deferred_updates import CounterUpdate
from .gate_events import SourceIncrement
from .samples import Sample
from .series_store import Key, StoredSeries


@dataclass
class _Said:
    """What is told of one source: its samples by boot, and when its boots began."""

    boots: dict[str, list[increments.Sample]] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)


class SampleMerger:
    """All samples that have to be placed, and what is to be written for it."""

    def __init__(
        self, work: CounterUpdate, known: Mapping[Key, Mapping[str, StoredSeries]]
    ) -> None:
        self._work = work
        self._known = known
        self._late: dict[Key, _Said] = {}
        self._new: list[tuple[Key, str, Boot, increments.Sample]] = []
        self._changed: list[tuple[int, Boot, increments.Sample]] = []
        self._appended: dict[int, list[increments.Sample]] = {}
        self._merged: dict[int, list[increments.Sample]] = {}
        self._first: dict[tuple[Key, str], list[increments.Sample]] = {}
        self.grown: list[SourceIncrement] = []
        self.news: dict[Key, int] = {}

    def take(self, key: Key, told: Iterable[Sample]) -> None:
        """Place the samples of a source, at once if nothing has to be read for it."""
        said = _said(told)
        there = self._known.get(key, {})
        if _is_newest(said, there):
            boots = {name: one.boot([one.head]) for name, one in there.items()}
            self._place(key, merge_samples(boots, said.boots, said.started), is_whole=False)
        else:
            self._late[key] = said

    def finish(self) -> None:
        """Place the rest, and write down all that sources say now."""
        for key, boots in self._near().items():
            said = self._late[key]
            self._place(key, merge_samples(boots, said.boots, said.started), is_whole=True)
        ids = series_store.save_series(self._new, self._changed)
        for names, samples in self._first.items():
            self._appended[ids[names]] = samples
        series_store.save_samples(self._appended, self._merged)

    def _near(self) -> dict[Key, dict[str, Boot]]:
        """For each source its boots with their samples around those that are late."""
        wanted: list[tuple[StoredSeries, int, int]] = []
        for key, said in self._late.items():
            there = self._known.get(key, {})
            times = [sample.at for samples in said.boots.values() for sample in samples]
            # What a boot counts from may be another time now, if it says that it began earlier.
            times += [one.first for name, one in there.items() if _begins_earlier(name, one, said)]
            low, high = minute_of(min(times)), minute_of(max(times))
            wanted += [(one, low, high) for one in there.values()]
        found = series_store.load_around(wanted) if wanted else {}
        return {
            key: {name: one.boot(found[one.id]) for name, one in self._known.get(key, {}).items()}
            for key in self._late
        }

    def _place(self, key: Key, merged: MergeResult, *, is_whole: bool) -> None:
        """Note all that follows; `is_whole` if all samples of the minutes in question are known."""
        self._work.add(key[0], merged)
        self.grown += ((key, step) for step in net_increments(merged))
        self.news[key] = sum(map(len, merged.new.values()))
        for name, boot in merged.boots.items():
            news = merged.new.get(name, [])
            known = self._known.get(key, {}).get(name)
            if known is None:
                self._new.append((key, name, boot, news[-1]))
                self._first[key, name] = news
            elif news or boot != known.boot(boot.samples):
                is_last = bool(news) and news[-1].at >= known.head.at
                self._changed.append((known.id, boot, news[-1] if is_last else known.head))
                self._keep(known, boot, news, is_whole=is_whole)

    def _keep(
        self, known: StoredSeries, boot: Boot, news: Sequence[increments.Sample], *, is_whole: bool
    ) -> None:
        if not news:
            return
        if not is_whole:
            self._appended[known.id] = [*news]
            return
        minutes = {minute_of(sample.at) for sample in news}
        whole = [sample for sample in boot.samples if minute_of(sample.at) in minutes]
        self._merged[known.id] = whole


def net_increments(merged: MergeResult) -> list[Increment]:
    """What was counted that was not counted yet. Where something was only put in its place that is
    nothing; where that also adds to it, one step of the difference."""
    if not merged.removed:
        return [step for step in merged.added if step.total]
    good = sum(s.good for s in merged.added) - sum(s.good for s in merged.removed)
    total = sum(s.total for s in merged.added) - sum(s.total for s in merged.removed)
    if not 0 <= good <= total or not total:
        return []
    began = min(step.began for step in merged.added)
    return [Increment(began, max(step.ended for step in merged.added), good, total)]


def _said(told: Iterable[Sample]) -> _Said:
    said = _Said()
    for _, _, boot, moment, good, total, started_at in told:
        sample = increments.Sample(
            increments.to_micros(moment),
            increments.round_count(good),
            increments.round_count(total),
        )
        said.boots.setdefault(boot, []).append(sample)
        if started_at is not None:
            started = increments.to_micros(started_at)
            said.started[boot] = min(said.started.get(boot, started), started)
    return said


def _begins_earlier(name: str, known: StoredSeries, said: _Said) -> bool:
    started = said.started.get(name)
    return started is not None and (known.started is None or started < known.started)


def _is_newest(said: _Said, there: Mapping[str, StoredSeries]) -> bool:
    """Whether all of it came after everything that is known of the source, so that nothing has to
    be put in between."""
    if any(_begins_earlier(name, known, said) for name, known in there.items()):
        return False
    newest = max((known.head.at for known in there.values()), default=-1)
    return all(sample.at > newest for samples in said.boots.values() for sample in samples)
