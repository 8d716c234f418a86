"""Lets `python -m musterd` do what the command `musterd` does."""

from musterd.console import main

if __name__ == "__main__":
    main()
