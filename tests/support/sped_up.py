"""Rules with a shorter time: all of their durations divided by one number, nothing else changed."""

from __future__ import annotations

import re

UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION = re.compile(r"(?P<before>\[|\boffset |\bfor: )(?P<number>\d+)(?P<unit>[smhd])\b")


def sped_up(rules: str, factor: int) -> str:
    """Windows, offsets and what stands behind `for`. Numbers that are compared with stay."""

    def shorter(found: re.Match[str]) -> str:
        milliseconds = int(found["number"]) * UNITS_MS[found["unit"]] // factor
        return f"{found['before']}{milliseconds}ms"

    return DURATION.sub(shorter, rules)
