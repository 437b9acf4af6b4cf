"""Check docstrings and names against the project's rules of language; `make lint` runs it.

Prints one line for each offence, as `file:line: what is wrong`, and exits with 1 if there is any.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPENINGS = re.compile(r"(What|How|Whether|Who|Whom|Whose|Of|That|Where|When|Why|Which)\b")
"""Words that a docstring must not open with: it states what something is or does."""
LIMITS = re.compile(r"_?(MOST|LONGEST|LARGEST|LEAST|SHORTEST|SMALLEST|FEWEST)(_|$)")
TEST_FILES = re.compile(r"test_mended|_more$|_others$")
BARE = re.compile(
    r"(told|kept|asked|said|seen|gone|found|made|taken|given|heard|left|held|shown|known|lost|"
    r"met|written|drawn|thrown|chosen|done|begun|bound|brought|caught|grown|led|meant|paid|"
    r"spoken|stood|stuck|named|wanted|of|by|at|in|on|for|with|from|within|without|since|until|"
    r"about|after|before|again|still|yet|so|thus|here|there|anew|aside|beside)"
)
"""Participles, prepositions and adverbs that name no function by themselves."""
GERUNDS = {"bucketing", "hedging", "logging", "pricing", "routing", "serving", "testing"}
"""Gerunds that the field uses for a module."""
SAME_NAMES = {"Command", "Form", "Meta", "Incoming", "Settings"}
"""Class names that frameworks or the client's public modules repeat."""
PUBLIC = {("client/switchgear/patterns/bulkhead.py", "of")}
"""Functions of the client's public API, which keep their names."""
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    trees = {name: ast.parse((ROOT / name).read_text()) for name in tracked_files()}
    offences = [line for name, tree in trees.items() for line in check_file(name, tree)]
    offences += check_classes(trees)
    sys.stdout.writelines(f"{offence}\n" for offence in offences)
    return 1 if offences else 0


def tracked_files() -> list[str]:
    """Return the paths of the Python files in git, without migrations."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = listed.stdout.split("\0")
    return [name for name in names if name and "/migrations/" not in name]


def check_file(name: str, tree: ast.Module) -> Iterator[str]:
    stem = Path(name).stem
    if TEST_FILES.search(stem):
        yield f"{name}:1: {stem} tells history; name the behavior it tests"
    if BARE.fullmatch(stem) or (re.fullmatch(r"[a-z]+ing", stem) and stem not in GERUNDS):
        yield f"{name}:1: module {stem}; name what it holds"
    for node in ast.walk(tree):
        if isinstance(node, Documented):
            text = ast.get_docstring(node) or ""
            if OPENINGS.match(text):
                line = node.body[0].lineno
                yield f"{name}:{line}: docstring opens with {text.split()[0]}; state what it is"
        if isinstance(node, Function) and is_bare(node) and (name, node.name) not in PUBLIC:
            yield f"{name}:{node.lineno}: function {node.name}; name it by verb and object"
        elif isinstance(node, ast.Name) and LIMITS.match(node.id):
            yield f"{name}:{node.lineno}: name {node.id} MAX_… or MIN_…, with its unit"


def is_bare(function: Function) -> bool:
    """Return True for a bare participle or preposition that is no property or pytest fixture."""
    decorators = map(ast.unparse, function.decorator_list)
    is_attribute = any(re.search(r"property|fixture|setter", text) for text in decorators)
    return not is_attribute and BARE.fullmatch(function.name.strip("_")) is not None


def check_classes(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Report top-level classes that share a name within the console, or within the client."""
    places = defaultdict(list)
    for name, tree in trees.items():
        if "/tests/" not in name and not name.startswith("bench/"):
            part = "client" if name.startswith("client/") else "console"
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and node.name not in SAME_NAMES:
                    places[part, node.name].append(f"{name}:{node.lineno}")
    for (_, name), found in sorted(places.items()):
        if len(found) > 1:
            yield f"{found[0]}: class {name} is also at {', '.join(found[1:])}; one name, one thing"


if __name__ == "__main__":
    sys.exit(main())
