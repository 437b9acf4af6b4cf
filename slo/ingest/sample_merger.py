"""Merging of new samples into the stored samples of their source."""

from collections.abc import Mapping

from slo.arithmetic.boots import Boot, MergeResult, merge_samples
from slo.arithmetic.increments import Increment, Sample, minute_of

from . import series_store
from .deferred_updates import CounterUpdate
from .samples import SourceIncrement, SourceKey
from .series_store import StoredSeries

SamplesByBoot = Mapping[str, list[Sample]]


class SampleMerger:
    """Merges new samples into the stored ones of their source; :meth:`finish` writes changes."""

    def __init__(
        self,
        update: CounterUpdate,
        stored: Mapping[SourceKey, Mapping[str, StoredSeries]],
        started: Mapping[SourceKey, Mapping[str, int]],
    ) -> None:
        self._update = update
        self._stored = stored
        self._started = started
        self._late: dict[SourceKey, SamplesByBoot] = {}
        self._created: list[tuple[SourceKey, str, Boot, Sample]] = []
        self._changed: list[tuple[int, Boot, Sample]] = []
        self._appended: dict[int, list[Sample]] = {}
        self._replaced: dict[int, list[Sample]] = {}
        self._first: dict[tuple[SourceKey, str], list[Sample]] = {}
        self.gate_increments: list[SourceIncrement] = []
        self.new_counts: dict[SourceKey, int] = {}

    def add(self, key: SourceKey, new: SamplesByBoot) -> None:
        """Merge new samples of one source, unless they are late.

        They are late if later samples are stored, or if a boot's start moved back; :meth:`finish`
        then merges them.
        """
        stored, started = self._stored.get(key, {}), self._started.get(key, {})
        newest = max((series.head.at for series in stored.values()), default=-1)
        is_late = any(_begins_earlier(name, series, started) for name, series in stored.items())
        if is_late or any(one.at <= newest for samples in new.values() for one in samples):
            self._late[key] = new
        else:
            boots = {name: series.boot([series.head]) for name, series in stored.items()}
            self._merge(key, boots, new, is_whole=False)

    def finish(self) -> None:
        """Merge the late samples that :meth:`add` left, and write all changed series."""
        for key, boots in self._load_around().items():
            self._merge(key, boots, self._late[key], is_whole=True)
        ids = series_store.save_series(self._created, self._changed)
        for names, samples in self._first.items():
            self._appended[ids[names]] = samples
        series_store.save_samples(self._appended, self._replaced)

    def _load_around(self) -> dict[SourceKey, dict[str, Boot]]:
        """Return the boots of each source with late samples, and stored samples around those."""
        needed: list[tuple[StoredSeries, int, int]] = []
        for key, new in self._late.items():
            stored = self._stored.get(key, {})
            times = [sample.at for samples in new.values() for sample in samples]
            # A boot that reports an earlier start may count from another time now.
            started = self._started.get(key, {})
            times += [
                one.first for name, one in stored.items() if _begins_earlier(name, one, started)
            ]
            low, high = minute_of(min(times)), minute_of(max(times))
            needed += [(one, low, high) for one in stored.values()]
        found = series_store.load_around(needed) if needed else {}
        return {
            key: {name: one.boot(found[one.id]) for name, one in self._stored.get(key, {}).items()}
            for key in self._late
        }

    def _merge(
        self, key: SourceKey, boots: Mapping[str, Boot], new: SamplesByBoot, *, is_whole: bool
    ) -> None:
        """Merge new samples of a source into its `boots`, and plan which rows to write.

        If `is_whole`, the boots have all stored samples of the affected minutes, and the rows of
        these minutes are replaced. Otherwise each boot has only its last sample, and new samples
        are appended.
        """
        merged = merge_samples(boots, new, self._started.get(key, {}))
        self._update.add(key[0], merged)
        self.gate_increments += ((key, step) for step in net_increments(merged))
        self.new_counts[key] = sum(map(len, merged.new.values()))
        for name, boot in merged.boots.items():
            samples = merged.new.get(name, [])
            series = self._stored.get(key, {}).get(name)
            if series is None:
                self._created.append((key, name, boot, samples[-1]))
                self._first[key, name] = samples
            elif samples or boot != series.boot(boot.samples):
                is_last = bool(samples) and samples[-1].at >= series.head.at
                self._changed.append((series.id, boot, samples[-1] if is_last else series.head))
                if samples and is_whole:
                    minutes = {minute_of(sample.at) for sample in samples}
                    whole = [one for one in boot.samples if minute_of(one.at) in minutes]
                    self._replaced[series.id] = whole
                elif samples:
                    self._appended[series.id] = samples


def net_increments(merged: MergeResult) -> list[Increment]:
    """Return the events that a merge adds in total; those only moved in time are left out."""
    if not merged.removed:
        return [step for step in merged.added if step.total]
    good = sum(s.good for s in merged.added) - sum(s.good for s in merged.removed)
    total = sum(s.total for s in merged.added) - sum(s.total for s in merged.removed)
    if not 0 <= good <= total or not total:
        return []
    began = min(step.began for step in merged.added)
    return [Increment(began, max(step.ended for step in merged.added), good, total)]


def _begins_earlier(name: str, series: StoredSeries, started: Mapping[str, int]) -> bool:
    return name in started and series.begins_later_than(started[name])
