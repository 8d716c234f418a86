"""Minutes of real faults: `make prove` runs these."""

import os

collect_ignore_glob = [] if os.environ.get("MUSTERD_TEST_PROVE") else ["test_campaigns.py"]
