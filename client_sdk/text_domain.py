"""Texts of an open vocabulary: nobody lists beforehand what may occur."""

from __future__ import annotations

from .dataclass import dataclass
from .errors import InvalidValueError
from .plain_values import plain


@dataclass(frozen=True)
class TextDomain:
    """Texts, of which the first ``length`` bytes of UTF-8 count, cut between characters.

    Small and capital letters, and spaces, count as they are: the application decides what is alike.
    """

    length: int

    @property
    def size(self) -> int:
        """The most bytes of a value, which is what a mechanism of strings needs to know."""
        return self.length

    def encode(self, value: object, metric: str) -> bytes:
        """Return the bytes of *value*, cut to the length.

        Raises: InvalidValueError: no text, or one that UTF-8 cannot hold; it is not shown.
        """
        text = plain(value) if isinstance(value, str) else None
        if not isinstance(text, str):
            raise InvalidValueError(metric, "takes a text")
        try:
            # a character has a byte at least, so what follows cannot be within the length
            whole = text[: self.length + 1].encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidValueError(metric, "takes a text without lone surrogates") from None
        return whole[: self.length].decode("utf-8", "ignore").encode("utf-8")

    def as_given(self, encoded: object) -> str:
        """Return the text that *encoded* stands for."""
        assert isinstance(encoded, bytes)  # noqa: S101 - what encode returns
        return encoded.decode("utf-8")

    def in_words(self, encoded: object) -> str:
        """Return the text, or "an empty text"."""
        return self.as_given(encoded) or "an empty text"

    @property
    def form(self) -> str:
        """What an answer is, in words that follow "The answer is"."""
        return f"any text, of which the first {self.length} bytes count"

    def canonical(self) -> dict[str, object]:
        """Return what the texts mean, as JSON."""
        return {"length": self.length}
