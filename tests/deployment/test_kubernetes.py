"""Laws of the manifests in deploy/kubernetes, as ``kubectl kustomize`` builds them."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from tests.support.deployment import (
    OVERLAYS,
    ROOT,
    Thing,
    Things,
    needs_kubectl,
    needs_schemas,
    overlay,
    pods,
    with_options,
)
from tests.support.processes import of_kubernetes, services

pytestmark = needs_kubectl

PROXY = "a proxy"  # a pod of a namespace that may reach the web process
STRANGER = "a stranger"  # a pod of any other
VERSIONS = ("1.28.0", "1.31.0", "1.34.0", "1.37.0")


@pytest.fixture(scope="module", params=OVERLAYS)
def things(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Things:
    """Everything that can be applied of an overlay: with archive and prune."""
    return with_options(tmp_path_factory.mktemp("overlay"), str(request.param))


def container(template: Thing) -> Thing:
    (only,) = template["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def containers(things: Things) -> dict[str, Thing]:
    return {name: container(template) for name, template in pods(things).items()}


@needs_schemas
@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_is_what_this_version_of_kubernetes_knows(
    things: Things, version: str
) -> None:
    import kubernetes_validate

    for thing in things.values():
        kubernetes_validate.validate(thing, version, strict=True)


@needs_schemas
def test_a_field_that_kubernetes_does_not_know_is_seen(things: Things) -> None:
    """The planted bug of the test above: a probe at the wrong depth."""
    import kubernetes_validate

    wrong = copy.deepcopy(things["Deployment", "hearsay-web"])
    wrong["spec"]["template"]["spec"]["livenessProbe"] = {}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_what_is_applied_by_default_is_no_archive_and_deletes_nothing() -> None:
    for name in OVERLAYS:
        settings = overlay(name)["ConfigMap", "hearsay-settings"]["data"]

        assert set(settings) == {"HEARSAY_REGISTRY", "HEARSAY_PROFILE"}
        options = {f"hearsay-{option}" for option in ("archive", "prune", "backup", "watch")}
        assert options & set(pods(overlay(name))) == set()


def test_an_overlay_has_a_store_of_its_own_or_none() -> None:
    assert ("StatefulSet", "hearsay-store") in overlay("single")
    assert "hearsay-store" not in pods(overlay("high-availability"))


def test_the_namespace_enforces_that_no_pod_may_become_root(things: Things) -> None:
    labels = things["Namespace", "hearsay"]["metadata"]["labels"]

    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_a_container_has_the_image_of_compose_and_its_user(things: Things) -> None:
    compose = services()
    for name, template in pods(things).items():
        context, there = template["spec"]["securityContext"], compose[name.removeprefix("hearsay-")]

        assert container(template)["image"] == there["image"], name
        assert f"{context['runAsUser']}:{context['runAsGroup']}" == there["user"], name


def test_the_registry_is_mounted_where_the_settings_name_it_and_the_archive_too(
    things: Things,
) -> None:
    settings = things["ConfigMap", "hearsay-settings"]["data"]
    mounts = {
        mount["mountPath"]
        for name, own in containers(things).items()
        for mount in own["volumeMounts"]
        if mount["name"] == "registry" and name != "hearsay-store"
    }

    assert {f"{mount}/metrics.toml" for mount in mounts} == {settings["HEARSAY_REGISTRY"]}
    assert settings["HEARSAY_ARCHIVE"] == "/archive"


def test_a_worker_is_asked_for_its_heartbeat(things: Things) -> None:
    own = containers(things)["hearsay-worker"]

    assert own["livenessProbe"]["exec"]["command"] == ["hearsay", "worker", "--check"]


def test_a_single_store_is_one() -> None:
    assert overlay("single")["StatefulSet", "hearsay-store"]["spec"]["replicas"] == 1


def test_no_service_becomes_a_setting(things: Things) -> None:
    """Law: Kubernetes tells a pod of each Service by variables, and HEARSAY_PORT is one of ours."""
    services = [name for kind, name in things if kind == "Service"]
    injected = {f"{name.upper().replace('-', '_')}_PORT" for name in services}

    assert any(name.startswith("HEARSAY_") for name in injected)
    assert not any(process.faults for process in of_kubernetes(things).values())


def test_a_store_that_is_away_takes_uploads_from_a_process_and_never_ends_it(
    things: Things,
) -> None:
    own = containers(things)["hearsay-web"]

    assert own["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert own["startupProbe"]["httpGet"]["path"] == "/livez"
    assert own["readinessProbe"]["httpGet"]["path"] == "/readyz"
    uploads, pages = (things["Service", f"hearsay-{name}"]["spec"] for name in ("uploads", "pages"))
    assert "publishNotReadyAddresses" not in uploads
    assert pages["publishNotReadyAddresses"] is True
    assert uploads["selector"] == pages["selector"]


def test_a_drained_machine_takes_one_process_of_a_kind_at_a_time(things: Things) -> None:
    for name in ("hearsay-web", "hearsay-worker"):
        budget = things["PodDisruptionBudget", name]["spec"]

        assert budget["maxUnavailable"] == 1
        assert things["Deployment", name]["spec"]["replicas"] >= 2
        assert budget["selector"] == things["Deployment", name]["spec"]["selector"]


def test_the_address_of_the_store_is_the_one_that_make_secrets_writes() -> None:
    things = overlay("single")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    host, port = re.findall(r"@(\w+):(\d+)/0", makefile)[0]

    assert things["Service", host]["spec"]["ports"][0]["port"] == int(port)
    assert things["StatefulSet", "hearsay-store"]["spec"]["serviceName"] == host


def matches(selector: Thing, labels: Thing) -> bool:
    """Return whether *selector* chooses *labels*; an empty one chooses all."""
    assert set(selector) <= {"matchLabels"}
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def is_let(things: Things, source: str, target: str, port: int) -> bool:
    """Return whether the policies let *source* open *port* of *target*, as Kubernetes has it."""
    labels = {name: t["metadata"]["labels"] for name, t in pods(things).items()}
    policies = [thing["spec"] for (kind, _), thing in things.items() if kind == "NetworkPolicy"]

    def is_peer(peer: Thing, other: str) -> bool:
        if "namespaceSelector" in peer:
            of_namespace = {"hearsay/reaches-web": "yes"} if other == PROXY else {}
            assert "podSelector" not in peer
            return other not in labels and matches(peer["namespaceSelector"], of_namespace)
        return (
            "podSelector" in peer
            and other in labels
            and matches(peer["podSelector"], labels[other])
        )

    def side(pod: str, other: str, kind: str, word: str) -> bool:
        if pod not in labels:
            return True
        own = [p for p in policies if kind in p["policyTypes"]]
        own = [p for p in own if matches(p["podSelector"], labels[pod])]
        return not own or any(
            port in [one["port"] for one in rule["ports"]]
            and any(is_peer(peer, other) for peer in rule[word])
            for policy in own
            for rule in policy.get(kind.lower(), ())
        )

    return side(source, target, "Egress", "to") and side(target, source, "Ingress", "from")


def test_the_network_lets_each_reach_what_it_works_with_and_nobody_else(
    tmp_path: Path,
) -> None:
    """Law: who works for the store reaches it, a proxy the web process; the store nobody."""
    things = with_options(tmp_path, "single")
    everybody = [*pods(things), PROXY, STRANGER]

    let = {
        (source, target)
        for source in everybody
        for target in everybody
        for port in (6379, 8000)
        if source != target and is_let(things, source, target, port)
        if {source, target} != {PROXY, STRANGER}  # not ours
    }

    working = {
        f"hearsay-{name}"
        for name in ("init", "web", "worker", "archive", "prune", "backup", "watch")
    }
    assert let == {(PROXY, "hearsay-web")} | {(name, "hearsay-store") for name in working}


def test_a_policy_that_is_missing_is_seen(tmp_path: Path) -> None:
    """The planted bug of the test above: without the first policy the store may reach others."""
    things = with_options(tmp_path, "single")
    del things["NetworkPolicy", "hearsay-nobody"]

    assert is_let(things, "hearsay-store", STRANGER, 8000)


def test_with_a_store_elsewhere_only_its_network_is_reached() -> None:
    things = overlay("high-availability")
    (rule,) = things["NetworkPolicy", "hearsay-to-store"]["spec"]["egress"]
    to_all = things["NetworkPolicy", "hearsay-nobody"]["spec"]

    assert rule["to"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    assert to_all == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
