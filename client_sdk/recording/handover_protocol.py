"""What a program that ends at once and its child tell each other: values, notes and a permit.

Loads nothing but what every interpreter has loaded: a process lives for 0.2 s and pays for it all.
"""

from __future__ import annotations

import marshal
import os
import sys

from ..core.limits import DATABASE_FILE, MAX_COMPILED, MAX_EXPONENT, NOTES_FILE, PERMIT_FILE
from ..privacy.opt_outs import read_file

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final, TypeAlias

    HandedValue: TypeAlias = tuple[str, object, float]  # name, value of a plain type, Unix time

MOST_NOTES: Final = 1 << 16  # bytes that are read of them
PERMIT_SIZE: Final = 32  # hexadecimal digits, drawn when it is issued
_MOST_WAIT: Final = 86_400.0  # seconds; no pass is planned further ahead
MOST_TEXT: Final = 129  # characters; no metric looks at more
RATIO: Final = b"ratio"  # before two whole numbers; no metric takes bytes, so it is nobody's value


def to_plain(value: Any) -> Any:
    """Return *value* as one of Python's own types, which alone pass through the pipe.

    Whatever a metric takes is taken here, else silence would tell something of the value; and a
    text is cut to what can count of it.
    Raises: TypeError: it is none of those that a metric can take.
    """
    if value is None or type(value) in (bool, int, float):
        return value
    if isinstance(value, str):
        return str.__str__(value)[:MOST_TEXT]
    if isinstance(value, (list, tuple)):
        return tuple(map(to_plain, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(map(to_plain, value))
    if isinstance(value, dict) or hasattr(value, "keys"):  # any mapping
        return {to_plain(key): to_plain(entry) for key, entry in dict(value).items()}
    if callable(item := getattr(value, "item", None)):  # numpy's numbers
        own = item()
        return float(own) if type(own) is type(value) else to_plain(own)  # a long double is its own
    exact = getattr(value, "as_integer_ratio", None)  # decimals and fractions
    if exact is not None and abs(getattr(value, "adjusted", int)()) <= MAX_EXPONENT:
        return (RATIO, *exact())
    raise TypeError(type(value).__name__)


class Notes:
    """What need not be handed over: metrics that get no report, and passes that are not due.

    The first line holds a checksum of the others, so that damage reads as nothing.
    """

    def __init__(
        self,
        due: float | None = None,
        settled: Mapping[str, tuple[float, str]] | None = None,
        *,
        erased: str = "",
        place: str = "",
        refused: tuple[str, str] = ("", ""),
    ) -> None:
        """Say what is known.

        Args: due: when the next pass is due, in Unix time; None: nobody has noted it.
              settled: up to when, and why, values of each metric are not reported.
              erased: the state of the database in which a denial left nothing to erase.
              place: mark of the collector and the caps for which a child found *settled*.
              refused: mark of the settings that a child could not be made of, and why.
        """
        self.due, self.settled, self.erased = due, dict(settled or {}), erased
        self.place, self.refused = place, refused

    @classmethod
    def read(cls, folder: str, registry: str, now: float) -> Notes:
        """Return what was noted in *folder* of this *registry* before Unix time *now*."""
        try:
            lines = _lines_of(folder)
            if lines[0] != fingerprint(registry):
                return cls()
            noted, due = map(float, lines[1].split(" "))
            if not noted <= now or due > now + _MOST_WAIT:  # the clock was set back
                return cls()
            rows = (line.split(" ") for line in lines[5:])
            settled = {name: (float(until), reason) for name, until, reason in rows}
            refused, _, why = lines[4].partition(" ")
            return cls(
                due or None, settled, erased=lines[2], place=lines[3], refused=(refused, why)
            )
        except (OSError, ValueError, IndexError):
            return cls()

    def text(self, registry: str, now: float) -> str:
        """Return them as they are written at Unix time *now*."""
        head = fingerprint(registry), f"{now} {self.due or 0.0}", self.erased, self.place
        refused = " ".join(self.refused).encode("ascii", "replace").decode("ascii")
        rows = (f"{name} {until} {reason}" for name, (until, reason) in self.settled.items())
        text = "\n".join((*head, " ".join(refused.split()), *sorted(rows))) + "\n"
        return f"{checksum(text)}\n{text}"


def refusal_in(folder: str) -> str:
    """Return why the last child in *folder* could do nothing; empty if it could."""
    try:
        return _lines_of(folder)[4].partition(" ")[2]
    except (OSError, ValueError, IndexError):
        return ""


def _lines_of(folder: str) -> list[str]:
    """Return the lines of notes.  Raises OSError, ValueError: there are none, or damaged ones."""
    total, _, text = (
        read_file(os.path.join(folder, NOTES_FILE), MOST_NOTES).decode("ascii").partition("\n")
    )
    if total != checksum(text):
        raise ValueError
    return text.splitlines()


def checksum(text: str) -> str:
    """Return what differs for another *text*, but for an accident of 1 in 2^32."""
    from binascii import crc32

    return f"{crc32(text.encode('utf-8', 'replace')):08x}"


def portable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return *settings* as another process of this program reads them.

    A bundle of one file unpacks itself for each process anew, into another folder: of what lies
    there, only the place within is told.
    """
    path, folder = settings["registry"], os.path.join(getattr(sys, "_MEIPASS", ""), "")
    bundled = folder != "" and path.startswith(folder)
    return {**settings, "registry": path[len(folder) :] if bundled else path}


def unpacked_here(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given to ``portable``, or its equal in the bundle of this process."""
    folder = getattr(sys, "_MEIPASS", "")
    return {**settings, "registry": os.path.join(folder, settings["registry"])}


def settings_checksum(settings: object) -> str:
    """Return what tells *settings* of plain types from others."""
    return checksum(repr(settings))


def collector_checksum(settings: Mapping[str, Any]) -> str:
    """Return the mark of what ``Notes`` are for; a segment may change from run to run."""
    relay = settings.get("relay")
    way = [settings[name] for name in ("endpoint", "write_key", "caps")]
    return settings_checksum([*way, relay] if relay else way)


def fingerprint(registry: str) -> str:
    """Return what changes when the content of the file *registry* does."""
    from binascii import crc32  # erasure takes a name from here, and no sum

    try:
        text = read_file(registry, MAX_COMPILED)
    except OSError:
        return "none"
    return f"{len(text)} {crc32(text):08x}"


def erased_state(folder: str) -> str:
    """Return what changes when anything is written to the database of *folder*."""
    path = os.path.join(folder, DATABASE_FILE)
    if os.path.exists(f"{path}-wal") or os.path.exists(f"{path}-journal"):
        return ""  # it is in use
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return "none"
    return f"{status.st_size} {status.st_mtime_ns}"


def permit_in(folder: str) -> bytes:
    """Return the permit of hand-overs in *folder*; empty if there is none."""
    try:
        return read_file(os.path.join(folder, PERMIT_FILE), PERMIT_SIZE)
    except OSError:
        return b""


def issue_permit(folder: str) -> bytes:
    """Return the permit in *folder*, which is made if there is none; empty if it cannot be made."""
    if len(permit := permit_in(folder)) == PERMIT_SIZE:
        return permit
    from ..core.paths import create, make_folder  # at the first hand-over, and after a denial

    path = os.path.join(folder, PERMIT_FILE)
    try:
        make_folder(folder)
        if os.path.lexists(path):  # its writer was killed, or is writing: then its child gives up
            os.remove(path)
        file = create(path)
    except FileExistsError:  # another process was first
        return permit_in(folder)
    except OSError:
        return b""
    try:
        permit = os.urandom(PERMIT_SIZE // 2).hex().encode("ascii")
        return permit if os.write(file, permit) == PERMIT_SIZE else b""
    except OSError:
        return b""
    finally:
        os.close(file)


def withdraw_permit(folder: str) -> bool:
    """Remove the permit in *folder*; return whether there was one, or it could not be removed."""
    try:
        os.remove(os.path.join(folder, PERMIT_FILE))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass  # whoever erases tries again
    return True


def values_of(entries: Iterable[bytes]) -> list[HandedValue]:
    """Return what ``put`` was given, with values as ``to_plain`` makes them."""
    return [marshal.loads(entry) for entry in entries]  # noqa: S302 - this process wrote them
