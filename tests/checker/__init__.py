"""Judges a run by its history: which invariants hold. Standard library only; knows nothing of the
code under test. What a history looks like: README.md.
"""
