"""The keys of an issuer: made for all weeks beforehand, kept in one file, used one week each.

The secret file has the plan and every key; the public file has the plan and the public halves, for
collectors.  Applications are built with the digest of the plan.

The issuer cannot read what it signs.  A signature is computed under a random factor, so that its
time reveals nothing of the key, and checked before it is given out: one faulty result would be
enough to factor the modulus.

Source: RFC 9474, section 4.3 (BlindSign) and 7.1 (side channels); RFC 8017, section 5.1.2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gmpy2
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from client_sdk.core.base64url import base64url, from_base64url
from client_sdk.core.randomness import system_randomness
from client_sdk.wire.private_token import (
    EXPONENT,
    KIND,
    MODULUS_SIZE,
    REQUEST_PATH,
    REQUEST_SIZE,
    Plan,
    key_id_of,
    key_of,
    permutation_targets,
    read_plan,
)

from ..core.errors import FAULTS, ConfigError

_MODE: Final = 0o600  # no other user of this machine may sign
_BITS: Final = 8 * MODULUS_SIZE
AHEAD: Final = 1  # weeks before its own from which a key signs
_NEAR: Final = 4  # weeks within which no two ids end alike: requests name a key by its last byte
_NAME: Final = "FILE"
_THERE: Final = "is there already; keys are never replaced"


class SigningKey:
    """One private key.  Safe to share between threads."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        """Sign by *key*, of 2,048 bits."""
        numbers = key.private_numbers()
        self._modulus = gmpy2.mpz(numbers.public_numbers.n)
        self._p, self._q = gmpy2.mpz(numbers.p), gmpy2.mpz(numbers.q)
        self._of_p, self._of_q = gmpy2.mpz(numbers.dmp1), gmpy2.mpz(numbers.dmq1)
        self._inverse = gmpy2.mpz(numbers.iqmp)
        self.public = key_of(numbers.public_numbers.n)
        self.key_id = key_id_of(self.public)

    def sign(self, blinded: bytes) -> bytes | None:
        """Return what answers a *blinded* message; None if it is none for this key."""
        number = int.from_bytes(blinded, "big")
        if len(blinded) != MODULUS_SIZE or not 0 < number < self._modulus:
            return None
        root = self._root(number)
        if pow(root, EXPONENT, self._modulus) != number:
            raise ArithmeticError("a signature came out wrong, and was not given out")
        return int(root).to_bytes(MODULUS_SIZE, "big")

    def proof(self) -> list[str]:
        """Return the roots that prove that signing is a permutation, in base64url."""
        targets = permutation_targets(int(self._modulus))
        return [
            base64url(int(self._root(target)).to_bytes(MODULUS_SIZE, "big")) for target in targets
        ]

    def _root(self, number: int) -> gmpy2.mpz:
        """Return the root of *number*, computed of its product with the power of a random one."""
        factor = gmpy2.mpz(2 + system_randomness().uniform(int(self._modulus) - 2))
        hidden = number * gmpy2.powmod(factor, EXPONENT, self._modulus) % self._modulus
        of_p = gmpy2.powmod_sec(hidden % self._p, self._of_p, self._p)
        of_q = gmpy2.powmod_sec(hidden % self._q, self._of_q, self._q)
        root = of_q + self._q * ((of_p - of_q) * self._inverse % self._p)
        return root * gmpy2.invert(factor, self._modulus) % self._modulus


@dataclass(frozen=True)
class IssuerKeys:
    """What a secret file holds."""

    plan: Plan
    secrets: Mapping[int, rsa.RSAPrivateKey]  # by week

    def signing(self, this: int) -> dict[int, SigningKey]:
        """Return the keys that sign in week *this*: its own, and that of the next."""
        weeks = (week for week in range(this, this + AHEAD + 1) if week in self.secrets)
        return {week: SigningKey(self.secrets[week]) for week in weeks}


def make_keys(issuer: str, first: int, weeks: int, tokens: int) -> IssuerKeys:
    """Return new keys for *weeks* weeks from week *first* on.

    Raises: InvalidParameterError: the plan cannot be one.
    """
    read_plan({"issuer": issuer, "first": first, "tokens": tokens, "key_ids": ["00" * 32] * weeks})
    keys: list[rsa.RSAPrivateKey] = []
    ids: list[bytes] = []
    while len(keys) < weeks:
        key = rsa.generate_private_key(EXPONENT, _BITS)
        key_id = key_id_of(key_of(key.private_numbers().public_numbers.n))
        if key_id[-1:] not in {near[-1:] for near in ids[-_NEAR:]}:
            keys.append(key)
            ids.append(key_id)
    plan = Plan(issuer, first, tokens, tuple(ids))
    return IssuerKeys(plan, {first + place: key for place, key in enumerate(keys)})


def write_keys(keys: IssuerKeys, secret: Path, public: Path) -> None:
    """Write both files.

    Raises: ConfigError: one is there, or cannot be written; then there is no new file.
    """
    weeks = sorted(keys.secrets)
    private = [
        base64url(
            keys.secrets[week].private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        )
        for week in weeks
    ]
    shown = [base64url(SigningKey(keys.secrets[week]).public) for week in weeks]
    plan = keys.plan.as_json()
    for path in (secret, public):
        if os.path.lexists(path):
            raise ConfigError(_NAME, path, _THERE)
    fresh: list[Path] = []
    for path, mode, parts in ((secret, _MODE, private), (public, 0o644, shown)):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            fresh.append(path)
            with open(handle, "w", encoding="ascii") as file:
                json.dump({"plan": plan, "keys": parts}, file)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            for own in fresh:  # no one knows these keys yet
                own.unlink(missing_ok=True)
            there = isinstance(error, FileExistsError)
            rule = _THERE if there else f"cannot be written: {error.strerror}"
            raise ConfigError(_NAME, path, rule) from None


def read_keys(path: Path) -> IssuerKeys:
    """Return what the secret file *path* holds.  Raises ConfigError, which shows nothing of it."""
    try:
        others = os.name == "posix" and path.stat().st_mode & 0o077
        document: Any = json.loads(path.read_text("ascii"))
        plan = read_plan(document["plan"])
        # whether they are right is seen by their ids; a check of each takes a tenth of a second
        loaded = [
            load_der_private_key(from_base64url(text), None, unsafe_skip_rsa_key_validation=True)
            for text in document["keys"]
        ]
    except OSError as error:
        raise ConfigError(_NAME, path, f"cannot be read: {error.strerror}") from None
    except (*FAULTS, UnsupportedAlgorithm):
        raise ConfigError(_NAME, path, "must be what hearsay issuer-keys new wrote") from None
    if others:
        raise ConfigError(_NAME, path, "must be readable by its owner only: chmod 600")
    keys = [key for key in loaded if isinstance(key, rsa.RSAPrivateKey)]
    ids = tuple(key_id_of(key_of(key.private_numbers().public_numbers.n)) for key in keys)
    if ids != plan.key_ids:
        raise ConfigError(_NAME, path, "has other keys than its plan")
    return IssuerKeys(plan, {plan.first + place: key for place, key in enumerate(keys)})


def directory(plan: Plan, signing: Mapping[int, SigningKey]) -> bytes:
    """Return the directory of RFC 9578, section 4, with the plan and the proofs beside it."""
    keys = [
        {
            "token-type": KIND,
            "token-key": base64url(key.public),
            "hearsay-week": week,
            "hearsay-proof": key.proof(),
        }
        for week, key in sorted(signing.items())
    ]
    document = {
        "issuer-request-uri": REQUEST_PATH,
        "token-keys": keys,
        "hearsay-plan": plan.as_json(),
    }
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def request_in(body: bytes, signing: Mapping[int, SigningKey]) -> tuple[int, bytes] | None:
    """Return the week and the blinded message of a token request; None if it is none."""
    if len(body) != REQUEST_SIZE or body[:2] != KIND.to_bytes(2, "big"):
        return None
    weeks = [week for week, key in signing.items() if key.key_id[-1:] == body[2:3]]
    return (weeks[0], body[3:]) if weeks else None
