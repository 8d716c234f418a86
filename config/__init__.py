"""Owns what musterd is told: the settings, where each came from, and what is wrong with them."""
