"""Sealed uploads: bytes that wait for an acknowledgement and never change again.

Whatever happens on the way, a retry can only repeat what was said, never draw or say more.  A
sealed upload that outlives its first try is one whose outcome is unknown.  If it is certain that
nobody took it, its reports may be sealed anew: after no connection, as if never sealed; after a
refusal of its length in smaller uploads, with nothing beside them, as who refused it knows them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core import compact_json
from ..core.dataclass import dataclass, replace
from ..core.limits import MAX_COLUMNS, SIZE_CLASSES, UPLOAD_ID_SIZE
from ..core.randomness import Randomness, draw_bytes
from ..core.typing import TYPE_CHECKING, Any, Final, TypeAlias
from ..storage.outbox import discard_token, token_of
from ..wire.reports import DEVICE, Bounds, Report, columns_of

if TYPE_CHECKING:
    from sqlite3 import Cursor

    from ..storage.schema import Transaction
    from .tokens import TokenStore

Row: TypeAlias = tuple[int, str, bytes, int, bytes, int]  # of the table ``reports``

MAX_SEALED: Final = 5  # uploads from which on, while they fail, only what is a day old is sealed

_COLUMN_FRAME: Final = 80  # bytes of JSON around payloads: names, digest, an epoch of 20 digits
_UPLOAD_FRAME: Final = 128  # bytes of JSON around segment and columns
_SMALLER: Final = 4  # how much smaller an upload becomes that was too large: as size classes are


@dataclass(frozen=True)
class SealedUpload:
    """An upload as it is sent, again and again, until it is answered."""

    upload_id: bytes
    body: bytes
    reports: int
    number: int = 0  # its place among the sealed; another after each try, by whichever process
    rows: tuple[Row, ...] = ()  # what it was sealed from, until its first try is over
    known: bool = False  # whether its reports were in an upload that was refused
    token: bytes | None = None  # that it is sent with, whenever it is sent

    @property
    def is_new(self) -> bool:
        """Whether this is its first try, so that nobody took it before, unless at the same time."""
        return bool(self.rows)

    @property
    def headers(self) -> dict[str, str]:
        """What it is sent with beside its body."""
        if self.token is None:
            return {}
        from ..wire.private_token import HEADER, header_of  # few applications need it

        return {HEADER: header_of(self.token)}


class Sealer:
    """Turns what waits into uploads within *bounds*; *randomness* draws their ids and turns."""

    def __init__(
        self, randomness: Randomness, bounds: Bounds = DEVICE, tokens: TokenStore | None = None
    ) -> None:
        """Begin with the largest bodies that *bounds* allow; *tokens* has one for each."""
        self.bounds, self._tokens = bounds, tokens
        self._randomness = randomness
        self._body = bounds.body  # bytes; less once a proxy has refused that much
        self._pieces: dict[bytes, SealedUpload] = {}  # of refused uploads, never tried; by id

    def take(self, tx: Transaction, day: int, *, failing: bool) -> SealedUpload | None:
        """Return the upload whose turn it is; None if nothing waits.

        What was sealed comes first, and while tries fail, what was not: so neither keeps the other
        from being sent.  During an outage few uploads are sealed in vain: one a day and segment.

        Raises: EntropyError: no upload id could be drawn.
        """
        (sealed,) = tx.execute("SELECT count(*) FROM uploads").fetchone()
        if sealed and not failing:
            return self.first_sealed(tx)
        if sealed >= MAX_SEALED:
            (oldest,) = tx.execute("SELECT coalesce(min(day), ?) FROM reports", (day,)).fetchone()
            if oldest >= day:
                return self.first_sealed(tx)
        return self.seal(tx, day) or self.first_sealed(tx)

    def first_sealed(self, tx: Transaction) -> SealedUpload | None:
        """Return the sealed upload that was tried longest ago; None if there is none."""
        return self._upload_of(
            tx, tx.execute("SELECT id, body, reports, number FROM uploads ORDER BY number LIMIT 1")
        )

    def sealed(self, tx: Transaction, upload_id: bytes) -> SealedUpload | None:
        """Return the sealed upload of that id; None if it is gone."""
        columns = "SELECT id, body, reports, number FROM uploads WHERE id = ?"
        return self._upload_of(tx, tx.execute(columns, (upload_id,)))

    def seal(self, tx: Transaction, day: int) -> SealedUpload | None:
        """Return an upload that was never tried: a piece, or reports of one segment, sealed now.

        None if nothing waits that was not tried, or there is no token for it.

        Raises: EntropyError: no upload id could be drawn.
        """
        while self._pieces:
            upload_id = next(iter(self._pieces))
            piece = self.sealed(tx, upload_id)
            self._pieces.pop(upload_id, None)
            if piece is not None and piece.is_new:
                return piece
        segment = self._segment(tx)
        if self._tokens is not None and self._tokens.required:
            segment = segment if self._tokens.count(tx, day) else None
        return None if segment is None else self._seal(tx, day, segment)

    def seal_smaller(self, tx: Transaction, refused: SealedUpload, day: int) -> SealedUpload | None:
        """Seal the reports of *refused* in smaller uploads, and return the first of them.

        Only for what was too large at its first try: a refusal of a body unread is the one answer
        after which it is certain that nobody took it.  None, and nothing happens, if it cannot be
        made smaller, another process has tried it too, or a denial came first.

        Raises: EntropyError: no upload id could be drawn.
        """
        smaller = len(refused.body) // _SMALLER
        if len(refused.rows) < 2 or smaller < SIZE_CLASSES[0]:
            return None
        # a piece for which no token is left is sealed without
        if not self.bounds.apart:  # linked uploads take all that waits
            if not self.unseal(tx, refused):
                return None
            self._body = min(self._body, smaller)
            return self._seal(tx, day, refused.rows[0][1])
        if not self._retract(tx, refused):
            return None
        self._body = min(self._body, smaller)
        first, *pieces = self._split(tx, refused, day)
        for piece in list(self._pieces.values()):  # it would be refused as well
            if len(piece.body) > self._body and len(piece.rows) > 1 and self._retract(tx, piece):
                del self._pieces[piece.upload_id]
                pieces += self._split(tx, piece, day)
        self._pieces.update((piece.upload_id, piece) for piece in pieces)
        return first

    def unseal(self, tx: Transaction, upload: SealedUpload) -> bool:
        """Let the reports of *upload*, which nobody has seen, wait as before it was sealed.

        Returns: False if a denial or another process came first, or whoever refused the upload
                 that they were in knows them: beside later ones they would link the two.
        """
        if not upload.is_new or upload.known or not self._retract(tx, upload, unseen=True):
            return False
        (first,) = tx.execute("SELECT coalesce(min(number), 0) FROM reports").fetchone()
        numbers = range(first - len(upload.rows), first)  # they are older than all others again
        tx.executemany(
            "INSERT INTO reports (number, segment, digest, epoch, payload, day)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [(number, *row[1:]) for number, row in zip(numbers, upload.rows, strict=True)],
        )
        return True

    def waiting_uploads(self, tx: Transaction) -> int:
        """Return how many uploads would be needed for all that waits, if none grew too large."""
        alone = self.bounds.upload_reports == 1
        (count,) = tx.execute(
            "SELECT (SELECT count(*) FROM uploads) + (SELECT count(*) FROM reports)"
            if alone
            else "SELECT (SELECT count(*) FROM uploads)"
            " + (SELECT count(DISTINCT segment) FROM reports)"
        ).fetchone()
        return int(count)

    def _segment(self, tx: Transaction) -> str | None:
        """Return the segment whose turn it is.

        Of a device, one that has waited since the earliest day, and of several any: a fixed order
        would tell which uploads are of one device.
        """
        if not self.bounds.apart:
            row = tx.execute("SELECT segment FROM reports ORDER BY number LIMIT 1").fetchone()
            return None if row is None else str(row[0])
        days = tx.execute(
            "SELECT segment, min(day) FROM reports GROUP BY segment ORDER BY min(day), segment"
        ).fetchall()
        oldest = [segment for segment, day in days if day == days[0][1]]
        if len(oldest) < 2:
            return str(oldest[0]) if oldest else None
        return str(oldest[self._randomness.uniform(len(oldest))])

    def _seal(self, tx: Transaction, day: int, segment: str) -> SealedUpload:
        """Turn reports of *segment*, oldest first, into an upload, within the limits of a body."""
        rows = self._fitting(
            segment,
            tx.execute(
                "SELECT number, segment, digest, epoch, payload, day FROM reports"
                " WHERE segment = ? ORDER BY number LIMIT ? OFFSET ?",
                (segment, self.bounds.upload_reports, self._passed_over(tx, segment)),
            ),
        )
        upload = self._insert(tx, day, rows)
        tx.execute(
            "DELETE FROM reports WHERE segment = ? AND number BETWEEN ? AND ?",
            (segment, rows[0][0], rows[-1][0]),
        )
        return upload

    def _passed_over(self, tx: Transaction, segment: str) -> int:
        """Return how many reports of *segment* let others go first: none, where some go together.

        Of reports that go alone any of the earliest day goes first: a fixed order would link them.
        """
        if self.bounds.upload_reports > 1:
            return 0
        (count,) = tx.execute(
            "SELECT count(*) FROM reports WHERE segment = ?1"
            " AND day = (SELECT min(day) FROM reports WHERE segment = ?1)",
            (segment,),
        ).fetchone()
        return self._randomness.uniform(int(count))

    def _split(self, tx: Transaction, refused: SealedUpload, day: int) -> list[SealedUpload]:
        """Turn all reports of *refused*, and no others, into uploads as large as is allowed now."""
        rows, pieces = refused.rows, []
        while rows:
            fitting = self._fitting(rows[0][1], rows)
            pieces.append(replace(self._insert(tx, day, fitting), known=True))
            rows = rows[len(fitting) :]
        return pieces

    def _insert(self, tx: Transaction, day: int, rows: list[Row]) -> SealedUpload:
        spent = None if self._tokens is None else self._tokens.spend(tx, day)
        upload_id, token = (
            (draw_bytes(self._randomness, UPLOAD_ID_SIZE), None) if spent is None else spent
        )
        columns = columns_of(Report(*row[2:5]) for row in rows)
        body = self.bounds.seal(upload_id, day, compact_json.loads(rows[0][1]), columns)
        number = tx.execute(
            "INSERT INTO uploads (id, body, reports, sealed_day) VALUES (?, ?, ?, ?)",
            (upload_id, body, len(rows), day),
        ).lastrowid
        return SealedUpload(
            upload_id=upload_id,
            body=body,
            reports=len(rows),
            number=number or 0,
            rows=tuple(rows),
            token=token,
        )

    def _retract(self, tx: Transaction, upload: SealedUpload, *, unseen: bool = False) -> bool:
        """Delete a sealed upload that nobody has tried since; return False if somebody has."""
        place = upload.upload_id, upload.number
        query = "DELETE FROM uploads WHERE id = ? AND number = ?"
        retracted = tx.execute(query, place).rowcount > 0
        if retracted and upload.token is not None:
            if unseen and self._tokens is not None:
                self._tokens.put_back(tx, upload.upload_id)
            else:
                discard_token(tx, upload.upload_id)
        return retracted

    def _upload_of(self, tx: Transaction, cursor: Cursor) -> SealedUpload | None:
        """Return the upload of the row, as a piece that was never tried if it is one."""
        row = cursor.fetchone()
        if row is None:
            return None
        # Also where no tokens are given any more: without its own it would be counted again.
        upload = replace(SealedUpload(*row), token=token_of(tx, row[0]))
        piece = self._pieces.pop(upload.upload_id, upload)
        return piece if piece.number == upload.number else upload

    def _fitting(self, segment: str, rows: Iterable[Any]) -> list[Row]:
        """Return the leading rows that surely fit a body, even as JSON; at least one."""
        room = self._body - _UPLOAD_FRAME - len(segment)
        columns: set[tuple[bytes, int]] = set()
        fitting: list[Row] = []
        for row in rows:
            _, _, digest, epoch, payload, _ = row
            if (digest, epoch) not in columns:
                columns.add((digest, epoch))
                room -= _COLUMN_FRAME
            room -= -(-len(payload) * 4 // 3)
            if fitting and (room < 0 or len(columns) > MAX_COLUMNS):
                break
            fitting.append(row)
        return fitting


def move_to_end(tx: Transaction, upload: SealedUpload) -> SealedUpload:
    """Put a sealed upload behind all others, so that it blocks none.  Its bytes stay."""
    (number,) = tx.execute("SELECT max(number) + 1 FROM uploads").fetchone()
    tx.execute("UPDATE uploads SET number = ? WHERE id = ?", (number, upload.upload_id))
    return replace(upload, number=number)


def remove(tx: Transaction, upload_id: bytes) -> bool:
    """Delete a sealed upload; return False if another process, or a revocation, came first."""
    return tx.execute("DELETE FROM uploads WHERE id = ?", (upload_id,)).rowcount > 0
