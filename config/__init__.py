"""Owns the settings: their declarations, their layers, and everything that is wrong with them."""
