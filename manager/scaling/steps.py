"""How far one decision may change the crew, and which changes are too small to make. Pure."""

from __future__ import annotations

from typing import Literal

import attrs

TOLERANT_SIZE = 10  # of a crew up to this size a single worker is more than a small change

StepLimit = Literal["up_step", "down_step", "tolerance"]


@attrs.frozen
class Bounds:
    """Of a crew. The floor is reached at once, and no crew above the bound is kept."""

    floor: int
    bound: int

    @property
    def least(self) -> int:
        return min(self.floor, self.bound)


@attrs.frozen
class Steps:
    """`up`, `down`: the most workers that a decision hires or retires; 0 = any number."""

    up: int = 0
    down: int = 0
    tolerance_percent: float = 0.0

    def taken(
        self, size: int, raw: int, desired: int, bounds: Bounds
    ) -> tuple[int, StepLimit | None]:
        """What becomes of the way from `size` to `desired`. `raw`: the wish before any bound, since
        a wish that is far off is not a small one because a bound is near. The floor is always
        reached, so that a crew with nothing to do comes to rest.
        """
        if desired > size >= bounds.least and self._is_small(size, raw):
            return size, "tolerance"
        if desired > size and self.up and desired > max(size + self.up, bounds.least):
            return max(size + self.up, bounds.least), "up_step"
        if desired >= size or size > bounds.bound:
            return desired, None
        if desired > bounds.least and self._is_small(size, desired):
            return size, "tolerance"
        if self.down and desired < size - self.down:
            return size - self.down, "down_step"
        return desired, None

    def _is_small(self, size: int, wish: int) -> bool:
        return size > TOLERANT_SIZE and abs(wish - size) * 100 <= size * self.tolerance_percent


ANY_STEP = Steps()
