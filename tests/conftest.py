"""What holds for every test: clean environment, shared fixtures, hypothesis without deadlines."""

import os

import hypothesis

pytest_plugins = ["tests.fix_postgres"]

# A developer's own settings must not reach a test, nor a daemon that a test starts.
for _name in list(os.environ):
    if _name.startswith(("PG", "MUSTERD_")) and not _name.startswith("MUSTERD_TEST_"):
        del os.environ[_name]

# An example that a busy machine slows down is no failure.
hypothesis.settings.register_profile("musterd", deadline=None)
hypothesis.settings.load_profile("musterd")
