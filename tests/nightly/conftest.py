"""Too long for every day: `make nightly` runs these."""

import os

collect_ignore_glob = [] if os.environ.get("MUSTERD_TEST_NIGHTLY") else ["*"]
