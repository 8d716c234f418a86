"""Verifying: whether the log of events, the table of jobs and the counts tell one and the same
story, and a lawful one.

Everything but `comparison` and `verb` is pure. It judges by what users are told of the log
(docs/events.md, docs/states.md), and only accuses if no lawful course of events could have left
such a log.
"""
