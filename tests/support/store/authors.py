"""Three who save documents."""

from __future__ import annotations

from collector.workspace.documents import Author

ADA, BOB, EVE = (Author(f"token:{name}", name) for name in ("ada", "bob", "eve"))
