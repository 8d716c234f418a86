"""What holds for every test: clean environment, shared fixtures, hypothesis without deadlines."""

import os
from collections.abc import Generator

import hypothesis
import pytest

from tests.support.missing import ToolMissing, as_skipped

pytest_plugins = ["tests.fix_postgres"]

# A developer's own settings must not reach a test, nor a daemon that a test starts.
for _name in list(os.environ):
    if _name.startswith(("PG", "MUSTERD_")) and not _name.startswith("MUSTERD_TEST_"):
        del os.environ[_name]

# An example that a busy machine slows down is no failure.
hypothesis.settings.register_profile("musterd", deadline=None)
hypothesis.settings.load_profile("musterd")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, ToolMissing):
        as_skipped(item, report, call.excinfo.value)
    return report
