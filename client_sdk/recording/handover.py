"""What a program that ends at once keeps for its child, and what it need not keep.

Loads nothing but what every interpreter has loaded: a process lives for 0.2 s and pays for it all.
"""

from __future__ import annotations

import marshal
import os
import sys

from ..core.limits import DATABASE_FILE, MAX_COMPILED, MAX_EXPONENT
from ..privacy.opt_outs import read_file

TYPE_CHECKING = False  # type checkers take it for true; loading typing costs more than all else

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Final, TypeAlias

    HandedValue: TypeAlias = tuple[str, object, float]  # name, value of a plain type, Unix time

MOST_BYTES: Final = 1 << 20  # of values that are kept; a pipe may have room for fewer
NOTES: Final = "command-notes"  # what the last child told of reports and times; never of values
MOST_NOTES: Final = 1 << 16  # bytes that are read of them
PERMIT: Final = "command-permit"  # that a child must find as its parent did: a denial removes it
PERMIT_SIZE: Final = 32  # hexadecimal digits, drawn when it is issued
MOST_WAIT: Final = 86_400.0  # seconds; no pass is planned further ahead
MOST_TEXT: Final = 129  # characters; no metric looks at more
RATIO: Final = b"ratio"  # before two whole numbers; no metric takes bytes, so it is nobody's value


def plain(value: Any) -> Any:
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
        return tuple(map(plain, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(map(plain, value))
    if isinstance(value, dict) or hasattr(value, "keys"):  # any mapping
        return {plain(key): plain(entry) for key, entry in dict(value).items()}
    if callable(item := getattr(value, "item", None)):  # numpy's numbers
        own = item()
        return float(own) if type(own) is type(value) else plain(own)  # a long double is its own
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
            if not noted <= now or due > now + MOST_WAIT:  # the clock was set back
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
        read_file(os.path.join(folder, NOTES), MOST_NOTES).decode("ascii").partition("\n")
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


def mark_of(settings: object) -> str:
    """Return what tells *settings* of plain types from others."""
    return checksum(repr(settings))


def place_of(settings: Mapping[str, Any]) -> str:
    """Return the mark of what ``Notes`` are for; a segment may change from run to run."""
    relay = settings.get("relay")
    way = [settings[name] for name in ("endpoint", "write_key", "caps")]
    return mark_of([*way, relay] if relay else way)


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
        return read_file(os.path.join(folder, PERMIT), PERMIT_SIZE)
    except OSError:
        return b""


def issue_permit(folder: str) -> bytes:
    """Return the permit in *folder*, which is made if there is none; empty if it cannot be made."""
    if len(permit := permit_in(folder)) == PERMIT_SIZE:
        return permit
    from ..core.paths import create, make_folder  # at the first hand-over, and after a denial

    path = os.path.join(folder, PERMIT)
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
        os.remove(os.path.join(folder, PERMIT))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass  # whoever erases tries again
    return True


class Handover:
    """What one process has to hand over.  A child of fork begins with nothing."""

    def __init__(self, settings: Mapping[str, Any], end: Callable[[], None]) -> None:
        """Begin empty.

        Args: settings: keyword arguments of ``child.serve``, of plain types, with a path as
              ``registry``.  end: hands over; children of multiprocessing call it at their end.
        """
        self._settings, self._end = dict(settings), end
        self._values: list[bytes] = []  # each as the child reads it
        self._bytes = 0
        self._notes: Notes | None = None
        self._permit = b""
        self._maker = self._pid = os.getpid()
        self._begun = False  # whether this process has put anything down
        self._child = 0

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the child is told beside values."""
        return self._settings

    def put(self, name: str, value: object, now: float) -> str | None:
        """Keep *value* of Unix time *now*; return the reason if it need not, or cannot, be kept."""
        if not self._begun or self._pid != os.getpid():
            self._begin()
        until, reason = self.notes(now).settled.get(name, (0.0, ""))
        if now < until:
            return reason
        entry = marshal.dumps((name, plain(value), now))
        if self._bytes + len(entry) > MOST_BYTES:
            return "queue_full"
        self._values.append(entry)
        self._bytes += len(entry)
        return None

    def _begin(self) -> None:
        self._pid, self._values, self._bytes, self._begun = os.getpid(), [], 0, True
        if not self._permit:  # a denial from here on is one of these values
            self._permit = permit_in(self._settings["data_dir"])
        if "multiprocessing" in sys.modules or "billiard" in sys.modules:
            from .background import at_end_of_child

            at_end_of_child(self._end)

    def notes(self, now: float) -> Notes:
        """Return what the last child noted, read once."""
        if self._notes is None:
            notes = Notes.read(self._settings["data_dir"], self._settings["registry"], now)
            self._notes = notes
            if notes.place != place_of(self._settings):
                notes.settled = {}  # other settings may be wrong ones, and a child is to say so
            refused, why = notes.refused
            if why and refused == mark_of(portable(self._settings)):
                from ..core.stats import warn

                warn(f"{why}; so nothing that this program records is reported")
        return self._notes

    def permit(self) -> bytes:
        """Return the permit that the child must find; one is issued if there was none."""
        if not self._permit:
            self._permit = issue_permit(self._settings["data_dir"])
        return self._permit

    def forget(self) -> int:
        """Remove the values of this process, whose user said no; return how many those were."""
        self._permit = b""
        self._begun = False  # a value that comes after a new consent finds another permit
        return len(self.take())

    def take(self) -> list[bytes]:
        """Remove and return the values of this process, as ``values_of`` reads them."""
        values = self._values if self._pid == os.getpid() else []
        self._values, self._bytes = [], 0
        return values

    def start(self, values: list[bytes], now: float) -> int:
        """Hand *values* to a child, if there are any or a pass is due at Unix time *now*.

        Returns: how many it was handed; -1 if a child was needed and could not be started.
        """
        due = self.notes(now).due
        if not values and (due is None or now < due or os.getpid() != self._maker):
            return 0
        sends = (due is None or now >= due) and toss()
        if not values and not sends:
            return 0
        from .detached import start_child

        document = {
            "settings": portable(self._settings),
            "sends": sends,
            "permit": self.permit(),
        }
        child, count = start_child(document, values)
        self._child = max(child, 0)
        return count if child >= 0 else -1

    def reap(self) -> None:
        """Let a thread wait for the child, so that a program that goes on keeps no trace of it."""
        child, self._child = self._child, 0
        if child:
            from threading import Thread

            Thread(target=_wait_for, args=(child,), name="hearsay-child", daemon=True).start()


def _wait_for(child: int) -> None:
    from contextlib import suppress

    with suppress(OSError):  # the application may wait for any child
        os.waitpid(child, 0)


def toss() -> bool:
    """Return heads or tails of a fair coin of the system's."""
    return bool(os.urandom(1)[0] & 1)


def values_of(entries: Iterable[bytes]) -> list[HandedValue]:
    """Return what ``put`` was given, with values as ``plain`` makes them."""
    return [marshal.loads(entry) for entry in entries]  # noqa: S302 - this process wrote them
