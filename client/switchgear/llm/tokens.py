"""Token limits of requests to a model: prompts are shortened, split or refused before sending."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from switchgear.refusals import Refused


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a prompt, which strategies keep, shorten or leave out.

    `is_earlier` marks earlier context, which may be summarized; `is_optional` marks a part that may
    be left out, the lowest `priority` first.
    """

    text: str = field(repr=False)
    is_optional: bool = False
    priority: int = 0
    is_earlier: bool = False


Request = tuple[Part, ...]
"""The parts of one request, in order."""

Strategy = Callable[[tuple[Request, ...], "TokenBudget"], tuple[Request, ...] | None]
"""A function that returns shortened requests, or splits them into more requests; None if it can do
neither. The result need not fit, since the next strategy continues with it. May raise
:class:`ContentTooLarge`."""


class ContentTooLarge(Refused):
    """Raised if a prompt has `tokens` tokens where only `room` are allowed; nothing was sent.

    Leave something out, or use a model with a longer context.
    """

    def __init__(self, tokens: int, room: int) -> None:
        super().__init__(tokens, room)
        self.tokens = tokens
        self.room = room

    def __str__(self) -> str:
        return f"content too large: {self.tokens} tokens, {self.room} allowed"


def estimate(text: str) -> int:
    """Return an estimate of the number of tokens of `text`: one per three bytes; mostly too high.

    A token has about four bytes of UTF-8 in English and three or more in Korean, but may have fewer
    in code and digits. For exact numbers, pass a tokenizer as the `count` of a `TokenBudget`.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def split_text(text: str, room: int, count: Callable[[str], int]) -> list[str]:
    """Return `text` in pieces of at most `room` tokens.

    A piece ends at a paragraph, line, sentence or word, if one ends in the last half of the piece.
    Raise :class:`ContentTooLarge` if a single character has more tokens.
    """
    pieces = []
    while text:
        size = _longest_prefix(text, room, count)
        if size < len(text):
            size = _find_boundary(text, size)
        pieces.append(text[:size])
        text = text[size:]
    return pieces


@dataclass(frozen=True)
class Summarise:
    """A strategy that replaces all parts of earlier context by one summary.

    `call` receives the text and the maximum number of tokens of the summary, which is the number of
    tokens of the text divided by `ratio`. A longer summary is cut off.
    """

    call: Callable[[str, int], str]
    ratio: int = 4

    def __call__(
        self, requests: tuple[Request, ...], budget: "TokenBudget"
    ) -> tuple[Request, ...] | None:
        done = tuple(
            request if budget.fits(request) else self._shorter(request, budget)
            for request in requests
        )
        return None if done == requests else done

    def _shorter(self, request: Request, budget: "TokenBudget") -> Request:
        earlier = [part for part in request if part.is_earlier]
        if not earlier:
            return request
        text = "\n".join(part.text for part in earlier)
        most = budget.tokens_of(text) // self.ratio
        if not most:
            return tuple(part for part in request if not part.is_earlier)
        summary = self.call(text, most)
        if budget.tokens_of(summary) > most:
            try:
                summary = summary[: _longest_prefix(summary, most, budget.tokens_of)]
            except ContentTooLarge:  # Not even its first character fits: other strategies may help.
                return request
        index = request.index(earlier[0])
        rest = [part for part in request[index:] if not part.is_earlier]
        # Marked, so that it is not summarized again.
        return (*request[:index], replace(earlier[0], text=summary, is_earlier=False), *rest)


@dataclass(frozen=True)
class DropOptional:
    """A strategy that leaves out optional parts until the request fits.

    The lowest priority goes first, and among equal priorities the longest part.
    """

    def __call__(
        self, requests: tuple[Request, ...], budget: "TokenBudget"
    ) -> tuple[Request, ...] | None:
        done = tuple(self._less(request, budget) for request in requests)
        return None if done == requests else tuple(request for request in done if request)

    def _less(self, request: Request, budget: "TokenBudget") -> Request:
        remaining = list(request)
        optional = sorted(
            (part for part in request if part.is_optional),
            key=lambda part: (part.priority, -budget.count(part.text)),
        )
        for part in optional:
            if budget.fits(remaining):
                break
            del remaining[next(index for index, each in enumerate(remaining) if each is part)]
        return tuple(remaining)


@dataclass(frozen=True)
class Split:
    """A strategy that splits one request into several, keeping the order of parts.

    Parts stay together as long as they fit; a part that is too long alone is split. The first
    `head` parts, such as a system prompt, go into each request.
    """

    head: int = 0

    def __call__(
        self, requests: tuple[Request, ...], budget: "TokenBudget"
    ) -> tuple[Request, ...] | None:
        done: list[Request] = []
        for request in requests:
            done += [request] if budget.fits(request) else self._pieces(request, budget)
        return None if tuple(done) == requests else tuple(done)

    def _pieces(self, request: Request, budget: "TokenBudget") -> list[Request]:
        head, rest = request[: self.head], request[self.head :]
        room = budget.room - budget.tokens(head)
        if room <= 0:
            return [request]
        done: list[list[Part]] = [[]]
        left = room
        for part in rest:
            for text in split_text(part.text, room, budget.count):
                tokens = budget.count(text)
                if tokens > left and done[-1]:
                    done.append([])
                    left = room
                done[-1].append(replace(part, text=text))
                left -= tokens
        return [(*head, *parts) for parts in done if parts]


def fail_fast(requests: tuple[Request, ...], budget: "TokenBudget") -> tuple[Request, ...] | None:
    """A strategy that raises :class:`ContentTooLarge`, so that no later strategy is tried."""
    largest = max(map(budget.tokens, requests))
    raise ContentTooLarge(largest, budget.room)


class TokenBudget:
    """A limit of tokens for each request to a model: `limit`, less the `reserve` for its answer.

    `fit` applies the `strategies`, in order, until every request fits. `count` is a function that
    returns the number of tokens of a text. `overhead` is the number of additional tokens of each
    part, such as the markers of a message.
    """

    def __init__(
        self,
        limit: int = 16_000,
        *,
        reserve: int = 0,
        overhead: int = 0,
        count: Callable[[str], int] = estimate,
        strategies: Sequence[Strategy] = (DropOptional(), fail_fast),
    ) -> None:
        if not 0 <= reserve < limit or overhead < 0:
            raise ValueError(f"a reserve of {reserve} tokens leaves no room in a limit of {limit}")
        self.room = limit - reserve
        self._overhead = overhead
        self._count = count
        self._strategies = tuple(strategies)

    def tokens_of(self, text: str) -> int:
        """Return the number of tokens of a text, without overhead."""
        return self._count(text)

    def count(self, text: str) -> int:
        """Return the number of tokens of one part, including the overhead per part."""
        return self.tokens_of(text) + self._overhead

    def tokens(self, parts: Sequence[Part]) -> int:
        return sum(self.count(part.text) for part in parts)

    def fits(self, parts: Sequence[Part]) -> bool:
        return self.tokens(parts) <= self.room

    def fit(self, parts: Sequence[Part | str]) -> tuple[Request, ...]:
        """Make `parts` fit the budget by the strategies, and return the requests to send, in order.

        The result is empty only if `parts` is. Raise :class:`ContentTooLarge` if the strategies
        can't make the requests fit, or only by leaving out all parts.
        """
        whole = tuple(part if isinstance(part, Part) else Part(part) for part in parts)
        requests: tuple[Request, ...] = (whole,) if whole else ()
        for strategy in self._strategies:
            if all(map(self.fits, requests)):
                break
            changed = strategy(requests, self)
            requests = requests if changed is None else changed
        if not all(map(self.fits, requests)):
            raise ContentTooLarge(max(map(self.tokens, requests)), self.room)
        if whole and not any(requests):
            raise ContentTooLarge(self.tokens(whole), self.room)
        return requests


def _longest_prefix(text: str, room: int, count: Callable[[str], int]) -> int:
    """Return the number of leading characters of `text` with at most `room` tokens."""
    if count(text) <= room:
        return len(text)
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= room else (low, middle)
    if not low:
        raise ContentTooLarge(count(text[:1]), room)
    return low


def _find_boundary(text: str, size: int) -> int:
    for mark in ("\n\n", "\n", ". ", " "):
        end = text.rfind(mark, size // 2, size)
        if end >= 0:
            return end + len(mark)
    return size
