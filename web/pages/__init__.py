"""pages: how the live page looks. Pure: values go in, HTML comes out, every text escaped."""
