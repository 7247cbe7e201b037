"""Whether a machine runs the application by itself.  Loads nothing, so any program may ask.

A build that starts a program ten thousand times a day would count as ten thousand people.  What
gives it away is a variable that its service documents; or, on Linux, a container in which nothing
survives: it has no machine id, the data folder lies on its own layer, and no ledger is there yet.
``HEARSAY_TELEMETRY=1`` says that a person is there all the same.

Nothing is recorded there and nothing is sent, but nothing is erased either: nobody has said no.  A
registry with ``automation = "segment"`` keeps both apart instead.
"""

from __future__ import annotations

import os
import sys

from ..core.limits import DATABASE_FILE
from .opt_outs import HEARSAY_TELEMETRY, YES

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import Final

VARIABLES: Final = (  # each is set by its service to a text that is neither empty, 0 nor false
    "CI",  # most of them
    "GITHUB_ACTIONS",
    "TF_BUILD",  # Azure Pipelines
    "BUILDKITE",
    "GITLAB_CI",
    "JENKINS_URL",
    "TEAMCITY_VERSION",
    "CIRCLECI",
    "TRAVIS",
    "APPVEYOR",
    "BITBUCKET_BUILD_NUMBER",
    "CODEBUILD_BUILD_ID",  # AWS
    "DRONE",
    "bamboo_buildKey",
    "CIRRUS_CI",
    "SEMAPHORE",
    "NETLIFY",
    "GO_PIPELINE_NAME",  # GoCD
    "BITRISE_IO",
    "PROW_JOB_ID",
)
CONTAINER: Final = "a container that keeps nothing"

_UNSET: Final = ("", "0", "false")
_LAYERS: Final = (b"overlay", b"fuse-overlayfs", b"fuse.fuse-overlayfs", b"aufs")
_MACHINE_IDS: Final = ("etc/machine-id", "var/lib/dbus/machine-id")
_NO_ID: Final = (b"", b"uninitialized")  # an image has one of these, to be filled at its first boot
_MOST: Final = 1 << 16  # bytes that are read of a file of the system


def sign_of_automation(
    folder: str | PathLike[str] | None,
    environment: Mapping[str, str],
    root: str | None = "/",
) -> str | None:
    """Return what shows that nobody is here: a variable's name or CONTAINER; None: a person may be.

    Args: folder: the application's data folder; None: it keeps nothing, wherever it runs.
          root: of the machine's files; None: they tell nothing.
    """
    if environment.get(HEARSAY_TELEMETRY, "").strip().lower() in YES[1:]:
        return None
    for name in VARIABLES:
        if environment.get(name, "").strip().lower() not in _UNSET:
            return name
    if folder is not None and root is not None and sys.platform == "linux":
        return CONTAINER if is_disposable(folder, root) else None
    return None


def is_disposable(folder: str | PathLike[str], root: str = "/") -> bool:
    """Whether *folder* is of a container without a machine id, and no run before this one left any.

    What cannot be read tells nothing: then a person may be there.
    """
    try:
        if any(_read(root, path).strip() not in _NO_ID for path in _MACHINE_IDS):
            return False
        if os.path.lexists(os.path.join(folder, DATABASE_FILE)):
            return False
        rows = [line.split(b" ") for line in _read(root, "proc/self/mounts").splitlines()]
        kinds = [row[2] for row in rows if len(row) > 2 and row[1] == b"/"]
        if not kinds or kinds[-1] not in _LAYERS:  # the last mount covers those before it
            return False
        path = os.path.abspath(folder)
        while not os.path.exists(path):
            path = os.path.dirname(path)
        return os.stat(path).st_dev == os.stat(root).st_dev
    except OSError:
        return False


def may_be_told_apart(registry: str | PathLike[str]) -> bool:
    """Whether the file *registry* may keep both apart: bytes are searched, as parsing takes longer.

    True where that is not sure, as in a file that cannot be read: who reads it decides.
    """
    try:
        with open(registry, "rb") as file:
            text = file.read()
            return b'"segment"' in text or b"'segment'" in text  # as every other value of a key
    except OSError:
        return True


def _read(root: str, path: str) -> bytes:
    """Return the beginning of the system's file at *path*; empty if there is none."""
    try:
        with open(os.path.join(root, path), "rb") as file:
            return file.read(_MOST)
    except FileNotFoundError:
        return b""
