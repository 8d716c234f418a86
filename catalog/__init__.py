"""Owns what work there is: the kinds, how each behaves, and when it is tried again."""
