"""The metrics that this device was told to stop, by the newest list that it could verify.

Nothing but digests and a date is kept, in one property of the database.  A database that is put
back, or begun anew, forgets them until the next list comes.
"""

from __future__ import annotations

from ..core.limits import DIGEST_SIZE
from ..core.typing import TYPE_CHECKING, Final
from .schema import property_of, set_property

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .schema import Transaction

_DIGESTS: Final = "retired"  # one after the other
_ISSUED: Final = "retired_issued"  # Unix seconds


def digests(tx: Transaction) -> frozenset[bytes]:
    """Return the digests of all metrics that were ever retired here."""
    kept = property_of(tx, _DIGESTS)
    if not isinstance(kept, bytes):
        return frozenset()
    size = DIGEST_SIZE
    return frozenset(kept[start : start + size] for start in range(0, len(kept), size))


def keep(tx: Transaction, issued: int, retired: Iterable[bytes]) -> tuple[int, int] | None:
    """Add what is *retired* by a list *issued* at that Unix second.

    Returns: how many reports and windows of it were deleted; None if a newer list is known.
    What waits of it is deleted, true values first of all.  Its charge stays, as there are no
    refunds; and an upload that is sealed stays as it is, since the same bytes may have arrived.
    """
    known = property_of(tx, _ISSUED)
    if isinstance(known, int) and issued < known:
        return None
    before = digests(tx)
    new = frozenset(retired) - before
    if known != issued:
        set_property(tx, _ISSUED, issued)
    if not new:
        return 0, 0
    set_property(tx, _DIGESTS, b"".join(sorted(before | new)))
    reports = windows = 0
    for digest in new:
        reports += tx.execute("DELETE FROM reports WHERE digest = ?", (digest,)).rowcount
        windows += tx.execute("DELETE FROM windows WHERE digest = ?", (digest,)).rowcount
    return reports, windows
