"""Hostile neighbours of a real daemon, out of one seed: peers, sharers of its store, children.
Innocent jobs run meanwhile, and are counted from outside.
"""
