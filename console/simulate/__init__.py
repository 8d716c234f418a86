"""Simulating: a trace of past jobs goes in; what other settings would have made of them comes out.

All but `verb` is pure. The decisions are the supervisor's own (`manager/scaling/decision.py`), on
a virtual clock.
"""
