"""The collector of docker-compose.yml without containers: its store, its users, its commands."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import requests
import yaml

from collector.core.errors import StorageUnavailableError
from collector.demo.demo import Children
from collector.operations.parent_death import die_with_parent
from collector.storage.access import INIT, QUERY, USERS, acl_lines, name_of
from collector.storage.connection import Connection
from tests.support.crowds.uploads import registry_text
from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.site import wait_for_start
from tests.support.store.cluster import free_port, server_program
from tests.support.store.processes import until_ended

ROOT: Final = Path(__file__).parents[3]
_COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
_COMMAND: Final[list[str]] = _COMPOSE["services"]["store"]["command"]


class GuardedSite:
    """A running collector whose processes log in to the store as separate users."""

    def __init__(self, folder: Path, socket: str) -> None:
        self.folder, self._socket = folder, socket
        self.passwords = {user: secrets.token_urlsafe(32) for user in USERS}
        self.keys = {name: secrets.token_urlsafe(32) for name in ("write_key", "admin_token")}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        for user in USERS:
            self._write(f"{user}_url", self.address(user))
        for name, secret in self.keys.items():
            self._write(name, secret)
        self._write("metrics.toml", registry_text())

    def address(self, user: str) -> str:
        login = f"unix://{name_of(user, 'hearsay')}:{self.passwords[user]}@"
        return self._socket.replace("unix://", login, 1)

    def environment(self, user: str) -> dict[str, str]:
        """Return the settings of the service that is *user*; secrets are in files."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HEARSAY", "REDIS"))}
        return {
            **inherited,
            "HEARSAY_REGISTRY": str(self.folder / "metrics.toml"),
            "HEARSAY_PROFILE": "strict",
            "HEARSAY_PORT": str(self.port),
            "REDIS_URL_FILE": str(self.folder / f"{user}_url"),
            "HEARSAY_QUERY_URL_FILE": str(self.folder / f"{QUERY}_url"),
            "HEARSAY_WRITE_KEY_FILE": str(self.folder / "write_key"),
            "HEARSAY_ADMIN_TOKEN_FILE": str(self.folder / "admin_token"),
        }

    def run(self, *arguments: str, user: str = INIT) -> subprocess.CompletedProcess[str]:
        """Run one command as *user* of the store and return its output."""
        words = [sys.executable, "-m", "collector", *arguments]
        return subprocess.run(
            words,
            env=self.environment(user),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def get(self, path: str, secret: str) -> requests.Response:
        headers = {"Authorization": f"Bearer {secret}"}
        return requests.get(self.url + path, headers=headers, timeout=PATIENCE)

    def wait_until_ready(self, children: Children) -> None:
        wait_for_start(children, self._is_ready)

    def refused(self) -> set[tuple[str, str]]:
        """Return (user, command or key) of all that the store has refused to its users."""
        watcher = Connection.open(self._socket.replace("unix://", "unix://watcher:none@", 1))
        entries = [
            dict(zip(entry[::2], entry[1::2], strict=True))
            for entry in watcher.call("ACL", "LOG", 1_000)
        ]
        watcher.close()
        return {(one[b"username"].decode(), one[b"object"].decode()) for one in entries}

    def secrets(self) -> list[str]:
        """Return everything that no log and no command line may hold."""
        return [*self.passwords.values(), *self.keys.values()]

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/readyz", timeout=PATIENCE).status_code == 200
        except requests.ConnectionError:
            return False

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")


@contextmanager
def guarded_store(folder: Path, default: str | None = None) -> Iterator[GuardedSite]:
    """Run the store with the options of docker-compose.yml, but for where its files are.

    Args: default: the line of the default user, if not the one that Hearsay writes.
    """
    socket = folder / "store.sock"
    site = GuardedSite(folder, f"unix://{socket}?db=0")
    users = folder / "users_acl"
    lines = [*acl_lines("hearsay", site.passwords), "user watcher reset on nopass +acl|log"]
    if default:
        lines = [default if line.startswith("user default ") else line for line in lines]
    users.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = [str(users) if "/secrets/" in word else word for word in _COMMAND[1:]]
    here = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    words = die_with_parent([server_program(), *options, *here])
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log)
    with until_ended(server):
        _wait_for(f"unix://hearsay-health:none@{socket}?db=0", server)
        yield site


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Return when the store answers its health check."""
    with closing(Connection.open(url)) as store:
        wait_for(lambda: store.call("PING"), running=(server,), despite=(StorageUnavailableError,))
