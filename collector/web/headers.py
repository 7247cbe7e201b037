"""The headers that every answer carries: no script but ours, no frame, no cache."""

from __future__ import annotations

from typing import Final

EVERY_ANSWER: Final = (
    (
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Strict-Transport-Security", "max-age=31536000"),  # browsers heed it over TLS only
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
CACHE: Final = "Cache-Control"
REVALIDATE: Final = "private, no-cache"  # kept, but not used before the collector was asked
NO_STORE: Final = "no-store"  # unless a page says otherwise
