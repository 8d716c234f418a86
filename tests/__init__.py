"""The tests of musterd; README.md beside this file is the map of their layers."""
