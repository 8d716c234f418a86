"""Verifying: whether the log of events, the table of jobs and the counts tell one and the same
story, and a lawful one.

Everything but `audit` is pure. It judges by what users are told of the log (docs/events.md,
docs/states.md), and only accuses where no lawful course of things could have left such a log.
"""
