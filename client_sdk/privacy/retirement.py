"""Lists of retired metrics: what a developer stops on devices whose version still asks it.

One JSON object, the same for everybody: its version, when it was issued, the digests, and the
signature of all that.  A device takes it only under the public key of its own registry, so neither
the collector nor anybody on the way can write one; and it can only stop metrics.  What was retired
once stays so, whatever a later list says: another question has another digest.
"""

from __future__ import annotations

import json

from ..core.base64url import is_hex
from ..core.dataclass import dataclass
from ..core.limits import DIGEST_SIZE
from ..core.typing import Any, Final

VERSION: Final = 1
SIGNATURE_SIZE: Final = 64  # bytes
MAX_LIST: Final = 60_000  # bytes; what a device reads of any answer is a little more
MAX_RETIRED: Final = 4_000  # digests, which fit into it
MAX_ISSUED: Final = 1 << 40  # Unix seconds
_PURPOSE: Final = b"hearsay retired metrics\n"  # begins what is signed, and nothing else that is
_KEYS: Final = ("version", "issued", "retired")


@dataclass(frozen=True)
class Retirement:
    """What a list says: the digests of retired metrics, and the Unix second it was issued."""

    issued: int
    digests: frozenset[bytes]

    def text(self, seed: bytes) -> bytes:
        """Return the list, signed by the secret *seed*."""
        from ..wire.ed25519 import sign

        retired = sorted(digest.hex() for digest in self.digests)
        form = {"version": VERSION, "issued": self.issued, "retired": retired}
        whole = form | {"signature": sign(seed, _signed(form)).hex()}
        return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def read(text: bytes, key: bytes) -> Retirement | None:
    """Return the list *text* if the holder of the public *key* signed it, else None."""
    form = parsed(text)
    if form is None:
        return None
    from ..wire.ed25519 import verify  # 9 ms, for those whose collector has a list

    signature = bytes.fromhex(form.pop("signature"))
    if not verify(key, _signed(form), signature):
        return None
    return Retirement(form["issued"], frozenset(map(bytes.fromhex, form["retired"])))


def parsed(text: bytes) -> dict[str, Any] | None:
    """Return the fields of a list that has the right form, whoever signed it, else None."""
    try:
        form = json.loads(text) if len(text) <= MAX_LIST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(form, dict) or form.keys() != {*_KEYS, "signature"}:
        return None
    issued, retired = form["issued"], form["retired"]
    is_right = (
        type(form["version"]) is int
        and form["version"] == VERSION
        and type(issued) is int
        and 0 <= issued < MAX_ISSUED
        and isinstance(retired, list)
        and len(retired) <= MAX_RETIRED
        and all(is_hex(digest, DIGEST_SIZE) for digest in retired)
        and is_hex(form["signature"], SIGNATURE_SIZE)
    )
    return form if is_right else None


def _signed(form: dict[str, Any]) -> bytes:
    """Return what is signed: the purpose, and sorted, compact JSON of all but the signature."""
    return _PURPOSE + json.dumps(form, sort_keys=True, separators=(",", ":")).encode()
