"""What is asked of the parts of a proof, and what each of them says in the end."""

from __future__ import annotations

from pathlib import Path

import attrs


@attrs.frozen
class Plan:
    seed: int
    scale: float  # times what `make test` does
    seeds: int  # simulated clusters
    minutes: float  # of the soak
    jobs_a_second: float  # of the soak
    folder: Path  # histories that somebody has to look at stay here


@attrs.frozen
class Line:
    """Of the ledger. `violations`: how many complaints there were, of any sort."""

    part: str
    what: str
    violations: int
