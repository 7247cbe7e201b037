"""Running a program as the first process of a namespace, as in a container."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final

import pytest

AS_FIRST: Final = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def can_be_first() -> bool:
    """Return whether this user has the right to a PID namespace."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*AS_FIRST, "true"], capture_output=True, check=False).returncode == 0


needs_namespace: Final = pytest.mark.skipif(
    not can_be_first(), reason="no right to a PID namespace"
)
