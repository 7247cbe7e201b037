"""Under which keys a gateway keeps the ledgers of its devices.

A key is drawn from the local name of a device and a secret of its own, a file beside the database.
So the database has no names, and no one without that file can tell whose ledger is whose.  Unlike
the device secret it is kept when consent is withdrawn: without it every ledger would begin anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core.errors import InvalidValueError, StoreError
from .storage.schema import set_property
from .storage.secret import NAMES_FILE, Secret, device_key

if TYPE_CHECKING:
    from .core.paths import PathOrStr
    from .storage.store import Store


class DeviceKeys:
    """Keys for the names of devices."""

    def __init__(self, folder: PathOrStr | None, store: Store) -> None:
        """Keep the secret in *folder*, beside the database of *store*; None: in memory."""
        self._secret, self._store = Secret(folder, NAMES_FILE), store
        self._known: bytes | None = None

    def key(self, name: object) -> bytes:
        """Return the key of the device called *name*.

        Raises: InvalidValueError: no name; it is not shown.  StoreError: no secret.
        """
        if not isinstance(name, str) or not name:
            raise InvalidValueError("device", "takes a name")
        try:
            return device_key(self._known or self._load(), name)
        except UnicodeEncodeError:  # would show the name
            raise InvalidValueError("device", "takes a name in Unicode") from None

    def _load(self) -> bytes:
        """Take over the secret, or make one; then no older ledger can be found: all is in doubt.

        The doubt is on the disk before there is a new secret.
        """
        try:
            lost = not self._secret.exists
        except OSError as error:
            raise StoreError(f"{NAMES_FILE}: {error.strerror}") from error
        if lost:
            with self._store.transaction() as tx:
                if tx.execute("SELECT 1 FROM charges WHERE device <> x'' LIMIT 1").fetchone():
                    set_property(tx, "doubt", 1)
        with self._store.transaction() as tx:
            self._known = self._secret.get(tx)
        return self._known
