"""An editor on somebody's desktop: it asks first, records by typed handles, and ends at once.

    python examples/desktop_app.py --endpoint http://127.0.0.1:8000 --write-key KEY --theme dark

The answer to its question is kept in its own settings.  What it recorded is sent now and then by
a thread of the SDK, or with ``--send-now``, so that you need not wait to see it arrive.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from editor_metrics import Metrics, ThemeValue

from client_sdk import Client, Consent

REGISTRY = Path(__file__).with_name("metrics.toml")
PLATFORMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
THEMES: tuple[ThemeValue, ...] = ("light", "dark", "system")
QUESTION = "May this editor report how it is used? [y/N] "


class Settings:
    """What the editor remembers of its user: here, whether telemetry is welcome."""

    def __init__(self, folder: Path) -> None:
        """Read the settings in *folder*, if there are any."""
        self._path = folder / "settings.json"
        self._values = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}

    @property
    def consent(self) -> Consent:
        """What the user has said; unknown until there was a question."""
        return Consent.of(self._values.get("telemetry", Consent.UNKNOWN))

    def set_consent(self, consent: Consent) -> None:
        """Keep the answer."""
        self._values["telemetry"] = consent
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._values), encoding="utf-8")


def main() -> None:
    """Start the editor, do what somebody does with it, and end."""
    started = time.monotonic()
    options = read_options()
    settings = Settings(options.data_dir)
    with Client(
        options.endpoint,
        options.write_key,
        REGISTRY,
        consent=settings.consent,
        data_dir=options.data_dir / "telemetry",
        segment={"platform": PLATFORMS.get(sys.platform, "linux")},
    ) as client:
        if settings.consent is Consent.UNKNOWN:
            print(client.notice())
            agreed = input(QUESTION).strip().lower() in ("y", "yes")
            settings.set_consent(Consent.GRANTED if agreed else Consent.DENIED)
            client.set_consent(settings.consent)
        m = Metrics(client)
        m.startup_ms.record(1_000 * (time.monotonic() - started))
        m.theme.record(options.theme)
        m.uses_plugins.record(options.plugins > 0)
        for _ in range(options.saves):
            m.saves.add()  # added up on this device: one report a day, whatever their number
        if options.send_now:
            client.flush()
        print({reason: count for reason, count in client.stats().items() if count})


def read_options() -> argparse.Namespace:
    """Return what stands on the command line."""
    parser = argparse.ArgumentParser(description="An editor without an editor.")
    parser.add_argument("--endpoint", required=True, help="URL of the collector")
    parser.add_argument("--write-key", required=True, help="key of this application's devices")
    parser.add_argument("--data-dir", type=Path, default=Path.home() / ".example-editor")
    parser.add_argument("--theme", choices=THEMES, default="system")
    parser.add_argument("--plugins", type=int, default=0, help="how many are installed")
    parser.add_argument("--saves", type=int, default=2, help="how often the text is saved")
    parser.add_argument("--send-now", action="store_true", help="do not wait for the schedule")
    return parser.parse_args()


if __name__ == "__main__":
    main()
