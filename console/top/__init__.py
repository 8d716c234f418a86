"""top: queue, crew and jobs on one screen, live.

`state` is what is shown, `key_bindings` what a key does, `drawing` how it looks: all pure.
`terminal` and `verb` do the rest.
"""
