"""For tests of programs that use musterd: handlers run once, enqueued jobs looked at and run, all
without a daemon or a database.

Handlers run in the test's own process, whatever their kind's isolation, so that debuggers,
coverage and patches reach them.
"""

from musterd.testing.clients import HandlerFailed, RecordedJob, RecordedJobs, inline, recording
from musterd.testing.due import DueResult, run_due
from musterd.testing.handlers import InPhase, JobFacts, TestResult, run_handler

__all__ = [
    "DueResult",
    "HandlerFailed",
    "InPhase",
    "JobFacts",
    "RecordedJob",
    "RecordedJobs",
    "TestResult",
    "inline",
    "recording",
    "run_due",
    "run_handler",
]
