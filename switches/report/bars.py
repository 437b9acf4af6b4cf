"""Layout of bar charts."""

from dataclasses import dataclass

WIDTH, HEIGHT = 320, 132
LEFT, RIGHT, TOP, BOTTOM = 4, 4, 20, 22
MAX_BAR_WIDTH = 34.0


@dataclass(frozen=True)
class Bar:
    """A bar with its label and formatted value; numbers are in the drawing's units."""

    label: str
    value: str
    x: float
    y: float
    width: float
    height: float
    middle: float


@dataclass(frozen=True)
class BarChart:
    width: int
    height: int
    ground: int
    label_y: int
    bars: tuple[Bar, ...]


def draw(values: list[tuple[str, float]]) -> BarChart:
    """Return bars side by side, scaled to the highest value."""
    ground = HEIGHT - BOTTOM
    most = max((value for _, value in values), default=0.0)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(values))
    width = min(MAX_BAR_WIDTH, room * 0.62)
    bars = []
    for number, (label, value) in enumerate(values):
        height = (ground - TOP) * max(0.0, value) / most if most > 0 else 0.0
        middle = LEFT + room * (number + 0.5)
        bars.append(
            Bar(
                label=label,
                value=plain(value),
                x=round(middle - width / 2, 1),
                y=round(ground - height, 1),
                width=round(width, 1),
                height=round(height, 1),
                middle=round(middle, 1),
            )
        )
    return BarChart(WIDTH, HEIGHT, ground, HEIGHT - 6, tuple(bars))


def plain(value: float) -> str:
    """Return a value as text with few decimals: `0`, `0.4`, `12`, `1,240`."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return "< 0.1" if 0 < value < 0.1 else f"{value:.1f}"
