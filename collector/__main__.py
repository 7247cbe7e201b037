"""``python -m collector`` is ``hearsay``."""

from .cli import main

main()
