"""Check the one-time token of an upload.

A token is valid for one upload: the upload's id is the hash of the token, it was sealed in the week
of the issuer's key, and its reports are of the application that the token was issued for.  A spent
token is valid as well, and its upload a duplicate: a retry gets the answer of the first try, which
reveals nothing.  Every invalid token gets the same answer.

If issuers' keys are set, the id of every upload of a write key is remembered under the last day of
its week, with or without a token: a proxy may drop the header of one of two tries, and a device
that went back to an older release no longer sends it.  Without such keys only the ids of uploads
with a token are remembered so.  An upload without a token may therefore count twice if the first
keys are set, or the last are removed, between two tries of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from client_sdk.core.base64url import from_base64url
from client_sdk.wire.private_token import (
    EXPONENT,
    Plan,
    challenge_digest,
    from_header,
    key_id_of,
    last_day_of,
    modulus_of,
    parse,
    read_plan,
    upload_id_of,
    week_of,
)

from ..core.catalog import Catalog
from ..core.errors import ConfigError, MissingPackageError, TokenError
from ..storage.redis import SEEN_DAYS
from .wire import Upload

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

SETTING: Final = "HEARSAY_ISSUER_KEYS"
_SALT_SIZE: Final = 48  # bytes
_MOST_BYTES: Final = 1 << 20  # of a file of keys; ten years of them have a third
_NEEDED: Final = "a one-time token for this upload is needed: of its app and week, and not forged"
_digest = lru_cache(maxsize=1_024)(challenge_digest)  # a fleet spends tokens of few apps and weeks


class IssuerKey(NamedTuple):
    """A public key, and what it signs for."""

    issuer: str
    week: int
    public: RSAPublicKey


class Tokens:
    """The tokens that a collector takes.  Safe to share between threads."""

    def __init__(self, keys: Mapping[bytes, IssuerKey], *, required: bool = False) -> None:
        """Take tokens by *keys*, by their ids.

        Args: required: whether devices must send one; without keys none is looked at.
        """
        self._keys, self._required = keys, required
        if keys:
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
            from cryptography.hazmat.primitives.hashes import SHA384

            self._invalid: type[Exception] = InvalidSignature
            self._hash = SHA384()
            self._padding = PSS(MGF1(self._hash), _SALT_SIZE)

    @classmethod
    def of_files(cls, paths: Sequence[str], *, required: bool) -> Tokens:
        """Read the public files of issuers.  Raises ConfigError, MissingPackageError."""
        keys: dict[bytes, IssuerKey] = {}
        for path in paths:
            keys |= read_public(path)
        return cls(keys, required=required)

    def is_attested(
        self, header: str | None, paying: bytes | None, upload: Upload, catalog: Catalog
    ) -> bool:
        """Return whether *upload* has a token, which is good for it.

        Args:   header: what stands in the request; None for nothing.
                paying: the token in it, if that has the upload's id: see ``token_of``.
                catalog: the metrics that its key may report to.
        Raises: TokenError: there is one that is not good, or none where one is required.
        """
        if not self._keys or (header is None and not self._required):
            return False
        if paying is None or not self._is_good(paying, upload, catalog):
            raise TokenError(_NEEDED)
        return True

    def remembered_day(self, paying: bytes | None, upload: Upload, *, of_device: bool) -> int:
        """Return the day under which the id of *upload* is remembered, from its sealing on.

        Args: paying: see ``is_attested``.  of_device: whether it came under a write key.
        """
        if paying is None and not (self._keys and of_device):
            return upload.sealed
        return last_day_of(week_of(upload.sealed))

    def _is_good(self, paying: bytes, upload: Upload, catalog: Catalog) -> bool:
        token = parse(paying)
        key = None if token is None else self._keys.get(token.key_id)
        if token is None or key is None or key.week != week_of(upload.sealed):
            return False
        for column in upload.columns:  # of a metric that is unknown nothing is counted
            metric = catalog.by_digest.get(column.metric)
            if metric is not None:
                right = _digest(key.issuer, metric.app, key.week)
                if token.challenge_digest != right:
                    return False
        try:
            key.public.verify(token.authenticator, token.signed, self._padding, self._hash)
        except self._invalid:
            return False
        return True


def days_kept(has_keys: bool) -> int:
    """Return for how many days after its sealing the store may keep an id."""
    return SEEN_DAYS + 6 if has_keys else SEEN_DAYS  # as of the first day of a week


def token_of(header: str | None, upload: Upload) -> bytes | None:
    """Return the token in *header* whose hash is the id of *upload*; None if there is none."""
    token = None if header is None else from_header(header)
    return token if token is not None and upload_id_of(token) == upload.id else None


def read_public(path: str) -> dict[bytes, IssuerKey]:
    """Return the keys in the public file *path* that ``hearsay issuer-keys`` wrote.

    Raises: ConfigError, MissingPackageError.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
    except ImportError:
        rule = "is not installed: pip install 'hearsay-collector[issuer]'"
        raise MissingPackageError(f"cryptography: {rule}") from None
    plan, texts = _parts_of(path)
    keys: dict[bytes, IssuerKey] = {}
    for place, (text, key_id) in enumerate(zip(texts, plan.key_ids, strict=True)):
        public = RSAPublicNumbers(EXPONENT, modulus_of(text)).public_key()
        keys[key_id] = IssuerKey(plan.issuer, plan.first + place, public)
    return keys


def _parts_of(path: str) -> tuple[Plan, list[bytes]]:
    """Return the plan of a public file, and the keys of this plan as DER."""
    try:
        with open(path, "rb") as file:
            document: Any = json.loads(file.read(_MOST_BYTES))
        plan = read_plan(document["plan"])
        texts = [from_base64url(text) for text in document["keys"]]
        if tuple(map(key_id_of, texts)) != plan.key_ids:
            raise ValueError  # of other keys than its plan
    except OSError as error:
        raise ConfigError(SETTING, path, f"cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        rule = "must be the public file of hearsay issuer-keys"
        raise ConfigError(SETTING, path, rule) from None
    return plan, texts
