"""Make the templates of the Helm chart from the manifests in deploy/kubernetes, their only home.

    python deploy/helm/make_chart.py           writes hearsay/templates
    python deploy/helm/make_chart.py --check   fails if what is there is another

The manifests stay as they are, comments too; a few words of them become values.  Each of these
must be there once, so that no change of a manifest passes by unnoticed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
MANIFESTS: Final = HERE.parent / "kubernetes"
TEMPLATES: Final = HERE / "hearsay" / "templates"
NOTE: Final = "{{/* Made by deploy/helm/make_chart.py from deploy/kubernetes. */}}\n"
IMAGE: Final = {"image: hearsay:local": "image: {{ .Values.image }}"}
SPREAD: Final = {
    "whenUnsatisfiable: ScheduleAnyway": "whenUnsatisfiable: {{ .Values.whenUnsatisfiable }}"
}


def limits(component: str, memory: str) -> dict[str, str]:
    """Return how the limits of *component* become values."""
    written = f'limits: {{cpu: "1", memory: {memory}}}'
    cpu, most = (f".Values.{component}.{name}" for name in ("cpu", "memory"))
    return {written: f"limits: {{cpu: {{{{ {cpu} | quote }}}}, memory: {{{{ {most} }}}}}}"}


@dataclass(frozen=True)
class Template:
    """A manifest, and which words of it become values."""

    source: str  # below deploy/kubernetes
    words: Mapping[str, str] = field(default_factory=dict)
    condition: str = ""  # of the whole

    @property
    def name(self) -> str:
        """File of the chart: network.yaml of the store is store-network.yaml."""
        folder, _, name = self.source.partition("/")
        return name if folder == "base" or name.startswith(folder) else f"{folder}-{name}"

    def text(self) -> str:
        """Return the template.  Raises ValueError: a word is not there once."""
        text = (MANIFESTS / self.source).read_text(encoding="utf-8")
        for word, value in self.words.items():
            if text.count(word) != 1:
                raise ValueError(f"{self.source}: must hold once: {word!r}")
            text = text.replace(word, value)
        if not self.condition:
            return NOTE + text
        return f"{NOTE}{{{{- if {self.condition} }}}}\n{text}{{{{- end }}}}\n"


CHART: Final = (
    Template(
        "base/settings.yaml",
        {
            "  HEARSAY_PROFILE: strict\n": (
                "  HEARSAY_PROFILE: {{ .Values.profile }}\n"
                "{{- if .Values.archive.enabled }}\n"
                "  HEARSAY_ARCHIVE: /archive\n"
                "  HEARSAY_ARCHIVE_DAYS: {{ .Values.archive.days | quote }}\n"
                "{{- end }}\n"
                "{{- if .Values.prune.enabled }}\n"
                "  HEARSAY_KEEP_DAYS: {{ .Values.prune.keepDays | quote }}\n"
                "{{- end }}\n"
                "{{- if .Values.watch.enabled }}\n"
                "  HEARSAY_WATCHES: /etc/hearsay-watches/watches.toml\n"
                "{{- end }}\n"
                "{{- range $name, $value := .Values.settings }}\n"
                "  {{ $name }}: {{ $value | quote }}\n"
                "{{- end }}\n"
            )
        },
    ),
    Template("base/init.yaml", {**IMAGE, **limits("init", "512Mi")}),
    Template(
        "base/web.yaml",
        {
            **IMAGE,
            **SPREAD,
            **limits("web", "1024Mi"),
            "replicas: 2": "replicas: {{ .Values.web.replicas }}",
        },
    ),
    Template(
        "base/worker.yaml",
        {
            **IMAGE,
            **SPREAD,
            **limits("worker", "768Mi"),
            "replicas: 2": "replicas: {{ .Values.worker.replicas }}",
        },
    ),
    Template("base/network.yaml"),
    Template(
        "store/store.yaml",
        {
            "image: valkey/valkey:8-alpine": "image: {{ .Values.store.image }}",
            "- 768mb": "- {{ .Values.store.maxmemory }}",
            "storage: 10Gi": "storage: {{ .Values.store.size }}",
            **limits("store", "1536Mi"),
        },
        ".Values.store.enabled",
    ),
    Template("store/network.yaml", {}, ".Values.store.enabled"),
    Template(
        "high-availability/external-store.yaml",
        {
            "    - to: [{ipBlock: {cidr: 192.0.2.0/24}}]": (
                "    - to: [{ipBlock: {cidr: {{ required"
                ' "externalStore.cidr: must name the network of the store"'
                " .Values.externalStore.cidr }}}}]"
            ),
            "port: 6379": "port: {{ .Values.externalStore.port }}",
        },
        "not .Values.store.enabled",
    ),
    Template(
        "archive/archive.yaml",
        {
            **SPREAD,
            "image: hearsay-archive:local": "image: {{ .Values.archive.image }}",
            "storage: 10Gi": "storage: {{ .Values.archive.size }}",
            **limits("archive", "1024Mi"),
        },
        ".Values.archive.enabled",
    ),
    Template(
        "backup/backup.yaml",
        {
            **IMAGE,
            **limits("backup", "256Mi"),
            "storage: 10Gi": "storage: {{ .Values.backup.size }}",
            'schedule: "17 2 * * *"': "schedule: {{ .Values.backup.schedule | quote }}",
            '--keep, "30"': "--keep, {{ .Values.backup.keep | quote }}",
        },
        ".Values.backup.enabled",
    ),
    Template(
        "prune/prune.yaml",
        {
            **IMAGE,
            **limits("prune", "256Mi"),
            'schedule: "17 3 * * *"': "schedule: {{ .Values.prune.schedule | quote }}",
        },
        ".Values.prune.enabled",
    ),
    Template(
        "watch/watch.yaml",
        {**IMAGE, **SPREAD, **limits("watch", "512Mi")},
        ".Values.watch.enabled",
    ),
)


def main(*arguments: str) -> int:
    """Write the templates, or with ``--check`` compare them; return the exit status."""
    made = {template.name: template.text() for template in CHART}
    if "--check" in arguments:
        there = {path.name: path.read_text(encoding="utf-8") for path in TEMPLATES.iterdir()}
        differing = sorted(name for name in made | there if made.get(name) != there.get(name))
        for name in differing:
            print(f"{name}: is not what the manifests make; run {Path(__file__).name}")
        return 1 if differing else 0
    TEMPLATES.mkdir(parents=True, exist_ok=True)
    for path in TEMPLATES.iterdir():
        path.unlink()
    for name, text in made.items():
        (TEMPLATES / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
