"""Verifying: whether the log of events, the table of jobs and the counts agree, and are lawful.

All but `verb` is pure. A fault is reported only if no lawful course of events (docs/events.md,
docs/states.md) could have left such a log.
"""
