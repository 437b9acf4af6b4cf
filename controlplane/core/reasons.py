"""Validation of reasons: a reason must tell the next person what is wrong, where or why.

A reason is good if a symptom, a component, a cause or an incident number remains after removing
filler and words that fit every incident ("issue", "stop", "긴급"). Keyboard mash, repetition, bare
numbers and punctuation don't count.

Rejecting a good reason at 3 a.m. costs more than accepting a mediocre one. So one unknown word is
enough, and a reason in a language without a word list is never vague.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from controlplane.core import reason_words as words

MIN_COLUMNS = 10
MAX_CHARACTERS = 2000

# Advice on a reason to stop, and on a justification to let traffic flow again.
STOP_ADVICE = (
    "Say what you saw and where, or give the incident number, for example "
    "“OpenAI 5xx on completions since 02:10” or “INC-4411 double charges”."
)
RELEASE_ADVICE = (
    "Say what changed and how you know, or give the incident number, for example "
    "“provider recovered, error rate 0.2% for 15 min” or “INC-4411 hotfix 2.14.1 deployed”."
)

TEMPLATES = (
    "Errors or timeouts seen at {at}; cause not found yet",
    "Wrong answers or wrong amounts, reported by users at {at}",
    "Load or cost rising without limit since {at}",
    "Data exposure or abuse suspected at {at}",
)
"""Reasons to stop something that forms offer; `at` is a time."""

# Pasted alerts contain line breaks and tabs, which count as spaces. The direction overrides are
# rejected because an audit row with them displays differently than stored.
_LINE_CHARACTERS = frozenset("\t\n\r")
_OVERRIDES = frozenset("\u202d\u202e")

_ZERO_WIDTH_CATEGORIES = frozenset({"Mn", "Me", "Cc", "Cf", "Cs", "Zl", "Zp"})
# Letters by category, blank on screen: Hangul fillers and the empty Braille pattern.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Vowels and finals that failed to compose draw over the consonant before them.
_JOINING_JAMO = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff]")


def find_reason_problems(reason: str) -> list[str]:
    """Return the problems of a reason to engage a switch, each with advice; empty if it is good."""
    problems = find_text_problems(reason, called="reason", advice=STOP_ADVICE)
    if not _strip_invisible(reason) or len(reason) > MAX_CHARACTERS:
        return problems
    if (columns := count_columns(reason)) < MIN_COLUMNS:
        problems.append(
            f"The reason is too short: {columns} of at least {MIN_COLUMNS} characters "
            f"(wide characters such as Hangul count twice). {STOP_ADVICE}"
        )
    elif is_vague(reason):
        problems.append(f"The reason is too vague for the next person to act on. {STOP_ADVICE}")
    return problems


def find_text_problems(
    text: str, *, called: str = "justification", advice: str = RELEASE_ADVICE
) -> list[str]:
    """Return the problem, if any, of a text: it is blank, too long or has control characters.

    The message calls the text `called`; `advice` ends the message about a blank text.
    """
    if not _strip_invisible(text):
        return [f"A {called} is required. {advice}"]
    if len(text) > MAX_CHARACTERS:
        return [
            f"The {called} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are kept. "
            "Put the summary here and the rest in the evidence or the incident."
        ]
    if refused := sorted({f"U+{ord(c):04X}" for c in text if is_forbidden(c)}):
        return [
            f"The {called} contains control characters ({', '.join(refused[:5])}). "
            "Type it again, or paste it as plain text."
        ]
    return []


def count_columns(text: str) -> int:
    """Return the width of a text on a screen: wide characters have two columns, marks none."""
    return sum(_column_width(character) for character in _strip_invisible(text))


def is_vague(reason: str) -> bool:
    """Return True if a reason says neither what is wrong, nor where, nor why."""
    text = _normalize(reason)
    if any(fact.search(text) for fact in _FACTS):
        return False
    meaningful = [
        token for token, is_attached in _tokenize(text) if _is_meaningful(token, is_attached)
    ]
    return not meaningful or (len(meaningful) > 2 and len(set(meaningful)) == 1)


def _strip_invisible(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    shown = (c for c in composed if c.isspace() or _column_width(c))
    return " ".join("".join(shown).split())


def _column_width(character: str) -> int:
    if (
        unicodedata.category(character) in _ZERO_WIDTH_CATEGORIES
        or character in _BLANK_LETTERS
        or _JOINING_JAMO.match(character)
    ):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def is_forbidden(character: str) -> bool:
    """Return True for a control or direction character that must not be stored."""
    is_control = unicodedata.category(character) in {"Cc", "Cs"}
    return character in _OVERRIDES or (is_control and character not in _LINE_CHARACTERS)


# --- folding: normalize texts that read the same

_APOSTROPHES = re.compile("['’‘`]")
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_TIME_OUT = re.compile(r"\btim(?:e|es|ed|ing)[ -]out\b")
_ON_CALL = re.compile(r"\bon[ -]call\b")
_DATE = re.compile(r"\d{4}[-./]\d{1,2}[-./]\d{1,2}")
_VAGUE_PHRASES = re.compile("|".join(words.VAGUE_PHRASES))


def _normalize(reason: str) -> str:
    text = unicodedata.normalize("NFKC", reason).casefold()
    text = unicodedata.normalize("NFKC", text)
    # Without its marks a word of Hindi or Thai stays one token; invisible characters go as well.
    text = "".join(c for c in text if unicodedata.category(c) not in {"Mn", "Mc", "Me", "Cf"})
    text = _DASHES.sub("-", _APOSTROPHES.sub("", text))
    text = " ".join(text.split())
    text = _TIME_OUT.sub("timeout", text)
    text = _ON_CALL.sub("oncall", text)
    text = _DATE.sub(" ", text)
    return _VAGUE_PHRASES.sub(" ", text)


# --- facts: numbers that are evidence on their own

_NOT_AFTER_WORD = r"(?<![^\W_])"
_NOT_A_DURATION = r"(?![a-z0-9%]|[ ]?(?:시|분|초|일|주|개|달|년|건|명|hour|min|sec|day|week|month))"
_HTTP_ERRORS = "40[0-689]|41[0-8]|42[1-9]|431|451|49[59]|50[0-8]|51[01]|52[0-9]|530|598|599|[45]xx"


def _reference_pattern(nouns: frozenset[str], digits: str) -> re.Pattern[str]:
    alternatives = "|".join(sorted(nouns, key=len, reverse=True))
    return re.compile(
        rf"{_NOT_AFTER_WORD}(?:{alternatives})s?(?: ?(?:no|number|id|번호)\.?)?"
        rf"[ :#-]{{0,3}}{digits}{_NOT_A_DURATION}"
    )


_FACTS = (
    _reference_pattern(words.REFERENCE_NOUNS, r"\d++"),
    _reference_pattern(words.LOOSE_REFERENCE_NOUNS, r"\d{2,}+"),
    re.compile(rf"{_NOT_AFTER_WORD}[a-z]-\d{{2,}}"),  # i-123
    re.compile(r"#\d{2,}"),
    re.compile(rf"(?<![\w.,:-])(?:{_HTTP_ERRORS})s?(?![a-z0-9])"),
    re.compile(r"(?<![\w.])v?\d+(?:\.\d+){2,}"),  # a version or an address
    re.compile(r"(?<![\w.])(?!100%)\d+(?:\.\d+)?%"),
)


# --- tokens

_WORD = re.compile(r"[^\W_]+")
_HANGUL = "\u1100-\u11ff\uac00-\ud7ff"
_RUN = re.compile(f"[{_HANGUL}]+|[^{_HANGUL}]+")
_HANGUL_START = re.compile(f"[{_HANGUL}]")
_JAMO = re.compile("[\u1100-\u11ff]")

# 24, 30m, 2nd, 9pm; P1, SEV-2.
_EMPTY_TOKEN = re.compile(
    r"\d+(?:s|secs?|m|mins?|h|hrs?|hours?|d|days?|w|st|nd|rd|th|am|pm)?|(?:p|s|sev|prio|lvl?)\d"
)
_DIGITS = re.compile(r"\d+")
_STRETCHED = re.compile(r"([a-z])\1{2,}")


def _tokenize(text: str) -> Iterator[tuple[str, bool]]:
    """Yield runs of Hangul or other letters, and True if they continue a word (`가` of `API가`)."""
    for word in _WORD.findall(text):
        for run in _RUN.finditer(word):
            yield run.group(), run.start() > 0


def _is_meaningful(token: str, is_attached: bool) -> bool:
    unit, times = _repeated_unit(token)
    if times > 2:
        return False
    if _HANGUL_START.match(token):
        return not _is_vague_korean(unit, is_attached)
    if len(unit) < 2:
        return False
    if token.isascii():
        return not _is_vague_latin(unit, times)
    return not token.isnumeric()


def _repeated_unit(token: str) -> tuple[str, int]:
    """Return the shortest string that `token` repeats, and the number of full repetitions."""
    for size in range(1, min(len(token) // 2, 20) + 1):
        if token.startswith(token[size:]):
            return token[:size], len(token) // size
    return token, 1


def _is_vague_latin(token: str, times: int) -> bool:
    if _EMPTY_TOKEN.fullmatch(token):
        return True
    word = _DIGITS.sub("", token)  # test1, 1q2w3e4r
    if len(word) == 1:
        return len(token) == 1
    return (times == 2 and len(word) < 4) or _is_known_vague(word) or _is_mash(word)


_VAGUE_BASES = (
    words.ENGLISH_VAGUE
    | {noun for noun in words.REFERENCE_NOUNS | words.LOOSE_REFERENCE_NOUNS if noun.isascii()}
)  # fmt: skip
# Inflected ending → possible endings of the base form.
_INFLECTIONS = (
    ("ies", "y"), ("ied", "y"), ("s", ""), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"),
    ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"), ("ly", ""),
)  # fmt: skip


def _is_known_vague(word: str) -> bool:
    for spelling in {word, _STRETCHED.sub(r"\1", word), _STRETCHED.sub(r"\1\1", word)}:
        if spelling in words.ENGLISH_FILLERS or spelling in _VAGUE_BASES:
            return True
        if any(base in _VAGUE_BASES for base in _base_forms(spelling)):
            return True
    return False


def _base_forms(word: str) -> Iterator[str]:
    for ending, replacement in _INFLECTIONS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            base = word[: -len(ending)] + replacement
            yield base
            if base[-1] == base[-2]:
                yield base[:-1]  # stopp(ing)


# --- keyboard mash

_KEYBOARD_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_NEIGHBOURS = frozenset(
    pair
    for row in _KEYBOARD_ROWS
    for left, right in pairwise(row)
    for pair in (left + right, right + left)
)
_HOME_ROW = frozenset("asdfghjkl")
_VOWELS = frozenset("aeiouy")


def _is_mash(word: str) -> bool:
    """Return True for keyboard mash; thresholds were tuned on 45,000 real words and identifiers."""
    if any(run in row for run in (word, word[::-1]) for row in _KEYBOARD_ROWS):
        return len(word) > 2
    if word in _ALPHABET or word[::-1] in _ALPHABET:
        return len(word) > 3
    pairs = [left + right for left, right in pairwise(word)]
    if len(word) > 5 and sum(pair in _NEIGHBOURS for pair in pairs) >= 0.75 * len(pairs):
        return True
    return (len(word) > 6 and set(word) <= _HOME_ROW) or (len(word) > 7 and not set(word) & _VOWELS)


# --- Korean

_KOREAN_STEMS = words.KOREAN_STEMS | {
    noun for noun in words.REFERENCE_NOUNS | words.LOOSE_REFERENCE_NOUNS if not noun.isascii()
}
_KOREAN_AFTER_STEM = _KOREAN_STEMS | words.KOREAN_TAILS
_KOREAN_ATTACHED = _KOREAN_AFTER_STEM | words.KOREAN_COUNTERS
_MAX_KOREAN_LENGTH = max(map(len, _KOREAN_ATTACHED))


def _is_vague_korean(token: str, is_attached: bool) -> bool:
    if token in words.KOREAN_FILLERS or (len(token) == 1 and token in words.KOREAN_TAILS):
        return True
    if len(_JAMO.findall(token)) * 3 >= len(token):
        return True  # ㅋㅋㅋ, ㅁㄴㅇㄹ
    starts = _KOREAN_ATTACHED if is_attached else _KOREAN_STEMS
    reached = [True] + [False] * len(token)
    for end in range(1, len(token) + 1):
        for start in range(max(0, end - _MAX_KOREAN_LENGTH), end):
            pieces = _KOREAN_AFTER_STEM if start else starts
            if reached[start] and token[start:end] in pieces:
                reached[end] = True
                break
    return reached[-1]
