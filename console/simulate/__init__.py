"""The verbs that show what other settings would have made of past jobs (`manager/scaling/model`):
they read a trace, run it, search, and report. All but `verb` is pure.
"""
