"""One-time tokens of Privacy Pass: their bytes, and the plan of an issuer's keys.

A token says that an issuer vouched for a device, not for which one.  It is of type 0x0002, blind
RSA with 2,048 bits, so anyone with the issuer's public key can check it.

An issuer has a key for each week.  The ids of all its keys are in a *plan*, and applications are
built with the digest of that plan, so no device can be given a key of its own, which would be a
name.  A token is bound to the application and to the week in which it is spent: uploads of
another week cannot carry it.

The first bytes of its SHA-256 are the id of the upload that it pays for.  So the ids by which an
upload counts once are those by which a token is spent once, and nothing more is remembered.

Source: RFC 9577, sections 2.1 (challenge) and 2.2 (token); RFC 9578, section 6 (keys, requests).
"""

from __future__ import annotations

from binascii import a2b_base64
from hashlib import sha256, shake_256

from ..core.base64url import base64url, is_hex
from ..core.compact_json import dumps
from ..core.dataclass import dataclass
from ..core.epoch import DAY, epoch_of, epoch_start
from ..core.errors import InvalidParameterError
from ..core.limits import UPLOAD_ID_SIZE
from ..core.typing import Final, NamedTuple

# One Authorization is all that a request may have, and there the write key is.
HEADER: Final = "Hearsay-Token"
DIRECTORY_PATH: Final = "/.well-known/private-token-issuer-directory"
DIRECTORY_TYPE: Final = "application/private-token-issuer-directory"
REQUEST_PATH: Final = "/token-request"
REQUEST_TYPE: Final = "application/private-token-request"
RESPONSE_TYPE: Final = "application/private-token-response"

EVERY: Final = "7d"  # from one key of an issuer to the next
KIND: Final = 2  # of tokens: blind RSA with 2,048 bits
MODULUS_SIZE: Final = 256  # bytes; also of a signature
EXPONENT: Final = 65_537
NONCE_SIZE: Final = 32  # bytes
REQUEST_SIZE: Final = 3 + MODULUS_SIZE  # bytes
_HASH_SIZE: Final = 32  # bytes
_INPUT_SIZE: Final = 2 + NONCE_SIZE + 2 * _HASH_SIZE
TOKEN_SIZE: Final = _INPUT_SIZE + MODULUS_SIZE  # bytes
_TOKEN_TEXT: Final = -(-TOKEN_SIZE * 4 // 3)  # characters of base64url
MAX_WEEKS: Final = 520  # keys of a plan: ten years
MAX_TOKENS: Final = 1_000  # a week and identity
ROOTS: Final = 8  # of the proof of a key; 65,537^8 is above 2^128
_STANDARD: Final = bytes.maketrans(b"-_+/", b"+/**")  # base64url's letters; * is in neither
_LABEL: Final = b"hearsay: roots of a token key"
_MAX_ISSUER: Final = 255  # characters of a host and perhaps a port

# A key as DER has it, before its modulus and behind: RSASSA-PSS with SHA-384, MGF1 of it, salt 48.
_BEFORE: Final = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d01"
    "0108300b0609608648016503040202a2030201300382010f003082010a0282010100"
)
_BEHIND: Final = bytes.fromhex("0203010001")


class Token(NamedTuple):
    """A token in its parts."""

    nonce: bytes
    challenge_digest: bytes
    key_id: bytes
    authenticator: bytes

    @property
    def signed(self) -> bytes:
        """What the authenticator is a signature of."""
        return token_input(self.nonce, self.challenge_digest, self.key_id)


def parse(token: bytes) -> Token | None:
    """Return the parts of *token*; None if it is none of this kind."""
    if len(token) != TOKEN_SIZE or token[:2] != KIND.to_bytes(2, "big"):
        return None
    return Token(token[2:34], token[34:66], token[66:_INPUT_SIZE], token[_INPUT_SIZE:])


def token_input(nonce: bytes, challenge_digest: bytes, key_id: bytes) -> bytes:
    """Return what an issuer signs of a token, without seeing it."""
    return b"".join((KIND.to_bytes(2, "big"), nonce, challenge_digest, key_id))


def challenge(issuer: str, context: bytes, origin: str) -> bytes:
    """Return the challenge that a token answers.

    Args: context: 32 bytes, or none.
    """
    parts = [KIND.to_bytes(2, "big")]
    for text, size in ((issuer.encode(), 2), (context, 1), (origin.encode(), 2)):
        parts += (len(text).to_bytes(size, "big"), text)
    return b"".join(parts)


def challenge_digest(issuer: str, app: str, week: int) -> bytes:
    """Return what binds a token to *app* and *week*: nothing else of the spending is in it."""
    return _sha256(challenge(issuer, week.to_bytes(_HASH_SIZE, "big"), app))


def upload_id_of(token: bytes) -> bytes:
    """Return the id of the only upload that *token* pays for."""
    return _sha256(token)[:UPLOAD_ID_SIZE]


def header_of(token: bytes) -> str:
    """Return *token* as it stands in a request."""
    return base64url(token)


def from_header(text: str) -> bytes | None:
    """Return the token in *text*; None if that is none."""
    if len(text) != _TOKEN_TEXT:
        return None
    try:
        # as from_base64url, and in a third of the time: its length needs no padding
        return a2b_base64(text.encode("ascii").translate(_STANDARD), strict_mode=True)
    except ValueError:
        return None


def week_of(day: int) -> int:
    """Return the week of tokens that holds epoch *day*."""
    return epoch_of(EVERY, day * DAY)


def last_day_of(week: int) -> int:
    """Return the last epoch day of *week*.

    Ids of uploads with a token are remembered under this day, whichever day of it they were sealed
    on: else a token could be spent once a day.  It is never before the day of sealing, so an id
    is remembered for as long as its upload is accepted.
    """
    return epoch_start(EVERY, week + 1) // DAY - 1


def key_of(modulus: int) -> bytes:
    """Return the public key with *modulus* as DER: SubjectPublicKeyInfo of RSASSA-PSS."""
    return b"".join((_BEFORE, modulus.to_bytes(MODULUS_SIZE, "big"), _BEHIND))


def modulus_of(key: bytes) -> int:
    """Return the modulus of a public *key*.

    Raises: ValueError: a key of another kind or size.
    """
    modulus = key[len(_BEFORE) : -len(_BEHIND)]
    if len(modulus) != MODULUS_SIZE or modulus[0] < 0x80 or not modulus[-1] & 1:
        raise ValueError("key: must be of 2,048 bits")
    if key != b"".join((_BEFORE, modulus, _BEHIND)):
        raise ValueError("key: must be DER of RSASSA-PSS with SHA-384 and a salt of 48 bytes")
    return int.from_bytes(modulus, "big")


def permutation_targets(modulus: int) -> tuple[int, ...]:
    """Return the numbers, derived from a key, whose roots prove it; see ``upload.blind_rsa``."""
    size = MODULUS_SIZE + 16  # bytes, so that the remainder is uniform up to 2^-128
    stream = shake_256(_LABEL + modulus.to_bytes(MODULUS_SIZE, "big")).digest(ROOTS * size)
    places = range(0, len(stream), size)
    return tuple(int.from_bytes(stream[at : at + size], "big") % modulus for at in places)


def key_id_of(key: bytes) -> bytes:
    """Return the id by which tokens name a public *key*."""
    return _sha256(key)


@dataclass(frozen=True)
class Plan:
    """The keys of an issuer, week by week, and how many tokens it gives each identity in one."""

    issuer: str  # its name: a host, perhaps with a port
    first: int  # the week of the first key
    tokens: int  # a week and identity
    key_ids: tuple[bytes, ...]

    @property
    def digest(self) -> str:
        """What applications are built with: it differs if anything in the plan does."""
        return base64url(_sha256(dumps(self.as_json()).encode("ascii")))

    def key_id(self, week: int) -> bytes | None:
        """Return the id of the key of *week*; None if the plan has none."""
        place = week - self.first
        return self.key_ids[place] if 0 <= place < len(self.key_ids) else None

    def as_json(self) -> dict[str, object]:
        """Return the plan as its file and the directory have it."""
        return {
            "issuer": self.issuer,
            "first": self.first,
            "tokens": self.tokens,
            "key_ids": [key_id.hex() for key_id in self.key_ids],
        }


def read_plan(document: object) -> Plan:
    """Return the plan that ``as_json`` gave.

    Raises: InvalidParameterError: it is none.
    """
    if not isinstance(document, dict) or set(document) != {"issuer", "first", "tokens", "key_ids"}:
        raise InvalidParameterError("plan", "…", "must have issuer, first, tokens and key_ids")
    issuer, key_ids = document["issuer"], document["key_ids"]
    numbers = document["first"], document["tokens"]
    if not _is_issuer(issuer):
        raise InvalidParameterError("plan.issuer", "…", "must be a host, perhaps with a port")
    if any(type(number) is not int for number in numbers) or not 1 <= numbers[1] <= MAX_TOKENS:
        rule = f"must be whole numbers, tokens from 1 to {MAX_TOKENS}"
        raise InvalidParameterError("plan.first, plan.tokens", "…", rule)
    good = isinstance(key_ids, list) and 1 <= len(key_ids) <= MAX_WEEKS
    if not good or not all(is_hex(key_id, _HASH_SIZE) for key_id in key_ids):
        rule = f"must be 1 to {MAX_WEEKS} SHA-256 in hexadecimal"
        raise InvalidParameterError("plan.key_ids", "…", rule)
    return Plan(issuer, *numbers, tuple(map(bytes.fromhex, key_ids)))


def _is_issuer(name: object) -> bool:
    """Whether *name* is a valid name of an issuer."""
    good = isinstance(name, str) and 1 <= len(name) <= _MAX_ISSUER and name.isascii()
    return good and set(str(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789.:-[]")


def _sha256(data: bytes) -> bytes:
    return sha256(data).digest()
