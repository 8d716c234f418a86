"""Simulates what other settings would have made of past jobs, with the supervisor's own decisions
(`manager/scaling/decision.py`) on a virtual clock. All but `verb` is pure.
"""
