"""pages: how the live page looks. Pure: values go in, HTML comes out, every text escaped.

`style.css`, `script.js` and `icon.svg` are served as they are.
"""
