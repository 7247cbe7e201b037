"""Whether commands of the documentation that are for curl can be run."""

from __future__ import annotations

import shutil
from typing import Final

import pytest

NO_CURL: Final = "curl is not on PATH"
needs_curl: Final = pytest.mark.skipif(shutil.which("curl") is None, reason=NO_CURL)
