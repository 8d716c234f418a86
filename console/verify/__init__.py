"""Verifying: whether the log of events, the table of jobs and the counts agree, and are lawful.

Everything but `comparison` and `verb` is pure. It judges by what docs/events.md and docs/states.md
promise, and reports a fault only if no lawful course of events could have left such a log.
"""
