"""`python -m tests.bench.scaling [LOAD…] [--seconds N | --model]`, as `make bench ARGS=scaling`."""

from __future__ import annotations

import sys

from tests.bench.scaling.running import main

main(sys.argv[1:])
