"""pages: what the live page looks like. Pure: values go in, HTML comes out, every text escaped.

`style.css`, `script.js` and `icon.svg` are served as they stand.
"""
