"""Verifying that the event log, the jobs and the counts agree. All but `verb` is pure. A fault is
reported only if no lawful course of events (docs/events.md, docs/states.md) explains the log.
"""
