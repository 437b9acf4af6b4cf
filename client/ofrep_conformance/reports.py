"""Reports of results: text, JSON and JUnit XML."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from . import __version__
from .registry import CheckResult, Level, Verdict

MARKS = {
    Verdict.PASSED: "ok  ",
    Verdict.FAILED: "FAIL",
    Verdict.SKIPPED: "skip",
    Verdict.NOT_OFFERED: "no  ",
}


def count_failures(results: Sequence[CheckResult], *levels: Level) -> int:
    return sum(
        result.verdict is Verdict.FAILED and result.check.level in levels for result in results
    )


def format_result(result: CheckResult) -> str:
    check = result.check
    lines = [f"{MARKS[result.verdict]}  {check.level:<6}  {check.id:<30}  {check.requirement}"]
    if result.verdict is not Verdict.PASSED:
        lines += [f"      {detail}" for detail in result.details]
    if result.verdict is Verdict.FAILED:
        lines.append(f"      see {check.source}")
    return "\n".join(lines)


def format_summary(results: Sequence[CheckResult]) -> str:
    counts = Counter(result.verdict for result in results)
    failed = [
        f"{count} {level}"
        for level in (Level.MUST, Level.SHOULD)
        if (count := count_failures(results, level))
    ]
    detail = f" ({', '.join(failed)})" if failed else ""
    return (
        f"{len(results)} checks: {counts[Verdict.PASSED]} passed, "
        f"{counts[Verdict.FAILED]} failed{detail}, {counts[Verdict.NOT_OFFERED]} not offered, "
        f"{counts[Verdict.SKIPPED]} skipped"
    )


def format_json(url: str, results: Sequence[CheckResult]) -> str:
    document = {
        "suite": f"ofrep-conformance {__version__}",
        "protocol": "0.3.0",
        "url": url,
        "results": [
            {
                "id": result.check.id,
                "level": result.check.level,
                "requirement": result.check.requirement,
                "source": result.check.source,
                "verdict": result.verdict,
                "details": list(result.details),
                "seconds": round(result.seconds, 3),
            }
            for result in results
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def format_junit(results: Sequence[CheckResult]) -> str:
    """Return a JUnit XML report; an unmet MAY counts as skipped."""
    failures = count_failures(results, *Level)
    skipped = sum(r.verdict in (Verdict.SKIPPED, Verdict.NOT_OFFERED) for r in results)
    suite = ElementTree.Element(
        "testsuite",
        name="ofrep-conformance",
        tests=str(len(results)),
        failures=str(failures),
        skipped=str(skipped),
    )
    for result in results:
        suite.append(_make_case(result))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _make_case(result: CheckResult) -> ElementTree.Element:
    group, _, name = result.check.id.partition(".")
    case = ElementTree.Element("testcase", classname=group, name=name, time=f"{result.seconds:.3f}")
    text = "\n".join(_printable(result.details))
    if result.verdict is Verdict.FAILED:
        failure = ElementTree.SubElement(case, "failure", message=result.check.requirement)
        failure.text = text
    elif result.verdict is not Verdict.PASSED:
        ElementTree.SubElement(case, "skipped", message=text)
    return case


def _printable(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without characters that XML forbids."""
    for line in lines:
        yield "".join(each if each.isprintable() or each in "\t\n" else "?" for each in line)
