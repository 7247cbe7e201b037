"""Who a proxy says is there: believed from its address alone, and of its groups alone."""

from __future__ import annotations

import pytest

from collector.core.config import Config
from collector.core.credentials import ANALYST, ASK, MANAGE, OPERATE, OPERATOR, OWNER, VIEW, VIEWER
from collector.core.errors import ConfigError, ForbiddenError
from collector.core.proxies import ProxyLogin, label_of, require_apps

GROUPS = "team/shop=shop:owner, readers=viewer, readers=blog:analyst, sre=operator"
SETTINGS = {
    "HEARSAY_REGISTRY": "metrics.toml",
    "HEARSAY_TRUSTED_PROXIES": "10.0.3.7, fd00:1::/64",
    "HEARSAY_GROUPS": GROUPS,
}
PROXY = "10.0.3.7"


def login(**changes: str) -> ProxyLogin:
    made = Config.from_env(SETTINGS | changes).proxy
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("peer", "trusted"),
    [
        (PROXY, True),
        ("::ffff:10.0.3.7", True),
        ("fd00:1::7", True),
        ("10.0.3.8", False),
        ("fd00:2::7", False),
        ("127.0.0.1", False),
        ("", False),
        ("10.0.3.7, 10.0.3.7", False),
        ("localhost", False),
    ],
)
def test_only_the_listed_addresses_are_believed(peer: str, trusted: bool) -> None:
    assert login().is_trusted(peer) is trusted
    if not trusted:
        with pytest.raises(ForbiddenError, match="HEARSAY_TRUSTED_PROXIES"):
            login().credential(peer, "ada", "sre")


@pytest.mark.parametrize(
    ("groups", "roles"),
    [
        ("team/shop", {"shop": OWNER}),
        ("readers", {"*": VIEWER, "blog": ANALYST}),
        ("readers, team/shop ,unknown", {"*": VIEWER, "blog": ANALYST, "shop": OWNER}),
        ("sre,readers", {"*": OPERATOR, "blog": ANALYST}),
    ],
)
def test_groups_give_the_greatest_of_their_roles_app_by_app(
    groups: str, roles: dict[str, str]
) -> None:
    assert login().credential(PROXY, "ada@example.org", groups).roles == roles


def test_a_role_in_one_app_opens_nothing_in_another() -> None:
    person = login().credential(PROXY, "ada", "readers,team/shop")

    def scopes(app: str) -> set[str]:
        every = (VIEW, ASK, MANAGE, OPERATE)
        return {scope for scope in every if person.may(scope, app, "any", 0)}

    assert scopes("shop") == {VIEW, ASK, MANAGE}
    assert scopes("blog") == {VIEW, ASK}
    assert scopes("other") == {VIEW}


@pytest.mark.parametrize("groups", ["", "unknown", "TEAM/SHOP", "team", "*", "team/shop;sre"])
def test_groups_that_are_not_listed_open_nothing(groups: str) -> None:
    with pytest.raises(ForbiddenError, match="HEARSAY_GROUPS"):
        login().credential(PROXY, "ada", groups)


def test_the_group_of_everybody_needs_no_header_of_groups() -> None:
    everybody = login(HEARSAY_GROUPS="*=viewer")

    assert everybody.credential(PROXY, "ada", "").roles == {"*": VIEWER}


@pytest.mark.parametrize("user", ["mallory,ada", "a\nb", "\u202eada", "a" * 255])
def test_a_header_that_two_wrote_names_nobody(user: str) -> None:
    """A proxy that adds to what the visitor sent would let everybody be anybody."""
    with pytest.raises(ForbiddenError, match="must hold one name"):
        login().credential(PROXY, user, "sre")


def test_long_names_stay_different_as_labels() -> None:
    long = ["a" * 100 + end for end in ("1", "2")]

    assert label_of("ada@example.org") == "ada@example.org"
    assert len({label_of(name) for name in long}) == 2
    assert all(len(label_of(name)) <= 64 for name in long)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"HEARSAY_TRUSTED_PROXIES": ""}, "HEARSAY_GROUPS"),
        ({"HEARSAY_TRUSTED_PROXIES": "*"}, "HEARSAY_TRUSTED_PROXIES"),
        ({"HEARSAY_TRUSTED_PROXIES": "0.0.0.0/0"}, "HEARSAY_TRUSTED_PROXIES"),
        ({"HEARSAY_TRUSTED_PROXIES": "::/0"}, "HEARSAY_TRUSTED_PROXIES"),
        ({"HEARSAY_TRUSTED_PROXIES": "10.0.3.7/24"}, "HEARSAY_TRUSTED_PROXIES"),
        ({"HEARSAY_TRUSTED_PROXIES": "proxy.internal"}, "HEARSAY_TRUSTED_PROXIES"),
        ({"HEARSAY_TRUSTED_PROXIES": "10.0.3.7,"}, "HEARSAY_TRUSTED_PROXIES"),
        ({"HEARSAY_USER_HEADER": "X-Forwarded-For"}, "HEARSAY_USER_HEADER"),
        ({"HEARSAY_USER_HEADER": "X_Forwarded_User"}, "HEARSAY_USER_HEADER"),
        ({"HEARSAY_GROUPS_HEADER": "x-forwarded-user"}, "HEARSAY_GROUPS_HEADER"),
        ({"HEARSAY_GROUPS": ""}, "HEARSAY_TRUSTED_PROXIES"),
        ({"HEARSAY_GROUPS": "analysts=root"}, "HEARSAY_GROUPS"),
        ({"HEARSAY_GROUPS": "=viewer"}, "HEARSAY_GROUPS"),
        ({"HEARSAY_GROUPS": "analysts"}, "HEARSAY_GROUPS"),
        ({"HEARSAY_GROUPS": "a=Shop:viewer"}, "HEARSAY_GROUPS"),
    ],
)
def test_a_setting_that_could_not_be_meant_is_refused_by_name(
    changes: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Config.from_env(SETTINGS | changes)

    assert refused.value.name == named


def test_an_app_that_there_is_not_is_refused() -> None:
    require_apps(login(), ("shop", "blog"))
    require_apps(None, ())
    with pytest.raises(ConfigError, match="blog"):
        require_apps(login(), ("shop",))
