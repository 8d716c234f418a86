"""Histories made by hand: some that break one invariant and no other, some that look odd and are
right. Each can be told with commits and without, unless it says otherwise.
"""

from tests.checker.examples import (
    asking,
    bounding,
    freezing,
    keeping,
    leaving,
    living,
    owning,
    queueing,
    running,
    steps,
    storing,
    working,
)
from tests.checker.examples.story import EXAMPLES, Example

__all__ = [
    "EXAMPLES",
    "Example",
    "asking",
    "bounding",
    "freezing",
    "keeping",
    "leaving",
    "living",
    "owning",
    "queueing",
    "running",
    "steps",
    "storing",
    "working",
]
