"""Every route but that of uploads, with a credential that opens it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.support.crowds.uploads import ADMIN_TOKEN, READ_TOKEN, bearer

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True)
class Route:
    """A path and the headers that open it."""

    path: str
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.path


ROUTES: Final = (
    Route("/", bearer(READ_TOKEN)),
    Route("/metric/page", bearer(READ_TOKEN)),
    Route("/metric/page/answer.csv", bearer(READ_TOKEN)),
    Route("/compare", bearer(READ_TOKEN)),
    Route("/ask?metric=page&verb=top_k", bearer(READ_TOKEN)),
    Route("/ask.csv?q=%7B%22metrics%22:[%22page%22]%7D", bearer(READ_TOKEN)),
    Route("/plan?metric=page", bearer(READ_TOKEN)),
    Route("/privacy", bearer(READ_TOKEN)),
    Route("/privacy/people"),
    Route("/privacy/record.json", bearer(READ_TOKEN)),
    Route("/operations", bearer(ADMIN_TOKEN)),
    Route("/login"),
    Route("/v1/metrics", bearer(READ_TOKEN)),
    Route("/v1/metrics/page/estimate", bearer(READ_TOKEN)),
    Route("/v1/query?q=%7B%22metrics%22:[%22page%22]%7D", bearer(READ_TOKEN)),
    Route("/v1/openapi.json"),
    Route("/metrics", bearer(ADMIN_TOKEN)),
    Route("/livez"),
    Route("/readyz"),
    Route("/static/hearsay.css"),
)
