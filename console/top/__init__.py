"""top: queue, crew and jobs on one screen, live.

`state` says what is shown, `pressing` what a key does, `drawing` how it looks: all pure.
`terminal`, `reading` and `driver` do the rest.
"""
