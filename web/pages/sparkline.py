"""A small picture of the last minutes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from musterd.web.pages.html import Html, el

WIDTH, HEIGHT = 120, 32
TOP = 2  # so that a line at the top is not cut in half

Series = Sequence[float | None]


def sparkline(values: Series, about: str, second: Series = ()) -> Html:
    """A line with the area below it, from zero; a gap where nothing is known. `about` is what is
    read out instead. `second` is drawn dashed on the same scale.
    """
    known = [one for one in (*values, *second) if one is not None]
    if not any(one is not None for one in values):
        return el("p", "no samples yet", class_="spark none")
    high = max(*known, 1e-9)
    lines = [_path(part, high) for part in _parts(values)]
    area = "".join(f"M{line[0][0]:g} {HEIGHT}{_to(line)}V{HEIGHT}Z" for line in lines)
    drawn = [el("path", d=area, class_="area"), el("path", d=_strokes(lines), class_="line")]
    if second:
        others = [_path(part, high) for part in _parts(second)]
        drawn.append(el("path", d=_strokes(others), class_="line second"))
    return el(
        "svg", el("title", about), drawn, class_="spark", viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none", role="img",
    )  # fmt: skip


Points = Sequence[tuple[float, float]]


def _parts(values: Series) -> Iterator[list[tuple[float, float]]]:
    """Stretches of what is known: place from 0 to 1, and value."""
    last = max(len(values) - 1, 1)
    part: list[tuple[float, float]] = []
    for number, value in enumerate(values):
        if value is not None:
            part.append((number / last, value))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _path(part: Points, high: float) -> Points:
    return [
        (round(place * WIDTH, 1), round(HEIGHT - value / high * (HEIGHT - TOP), 1))
        for place, value in part
    ]


def _strokes(lines: Sequence[Points]) -> str:
    return "".join(f"M{line[0][0]:g} {line[0][1]:g}{_to(line[1:] or line)}" for line in lines)


def _to(line: Points) -> str:
    return "".join(f"L{x:g} {y:g}" for x, y in line)
