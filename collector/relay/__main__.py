"""The process of ``hearsay relay``."""

import sys

from .process import main

main(sys.argv[1:])
