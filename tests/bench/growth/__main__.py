"""`python -m tests.bench.growth [CASE…] [--scale X] [--rounds N] [--json FILE]`: one row for each
size of a case. `make bench ARGS=growth` runs all cases.
"""

from __future__ import annotations

import sys

from tests.bench.growth.running import main

main(sys.argv[1:])
