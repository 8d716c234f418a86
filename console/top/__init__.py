"""top: `state` is what is shown, `key_bindings` what keys do, `drawing` how it looks: all pure."""
