"""Simulating: the supervisor's decisions on a virtual clock. A trace of past jobs goes in, what
other settings would have made of them comes out.

All of it is pure; the decisions are those of `manager/scaling/decision.py`.
"""
