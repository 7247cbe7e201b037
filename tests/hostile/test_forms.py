"""The forms of the pages against a running collector: fields missing, unknown, twice, hostile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from collector.web.forms import FORM
from collector.web.pages.board_edit import EditForm
from collector.web.pages.boards import NewForm, PinForm
from collector.web.pages.documents import VersionForm
from collector.web.pages.notes import NoteForm
from collector.web.pages.session import LogIn, LogOut
from collector.web.pages.shared import ShareForm
from tests.hostile.markup import MARKUP
from tests.support.crowds.examples import trying
from tests.support.crowds.uploads import READ_TOKEN, bearer
from tests.support.sites.attacked_site import AttackedSite
from tests.support.sites.page_routes import page_paths
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

FORMS: Final[Mapping[str, type[Struct]]] = {
    "/board/{key}/edit": EditForm,
    "/boards": NewForm,
    "/login": LogIn,
    "/logout": LogOut,
    "/notes": NoteForm,
    "/pin": PinForm,
    "/share": ShareForm,
    "/{shelf}/{key}/delete": VersionForm,
    "/{shelf}/{key}/restore": VersionForm,
}
FEW: Final = 10
MANY: Final = pytest.param(2_000, marks=pytest.mark.slow)
ANSWERS: Final = {303, 400, 401, 404, 409, 413, 429}
VALUES: Final = st.sampled_from(
    (*MARKUP[:12], "", "1", "2", "-1", "9" * 30, "\0", "\ud7ff", "2026-11-20", "x" * 5_000)
)


def is_wrong(form: type[Struct], sent: list[tuple[str, str]]) -> bool:
    """Return whether a field is missing, is not of *form*, or is given twice and is no list."""
    fields = {field.name: field for field in structs.fields(form)}
    names = [name for name, _ in sent]
    missing = [name for name, field in fields.items() if field.required and name not in names]
    twice = [
        name
        for name in names
        if names.count(name) > 1 and name in fields and fields[name].type is str
    ]
    return bool(missing or twice or set(names) - set(fields))


def test_every_form_of_a_page_is_in_the_table() -> None:
    assert sorted(FORMS) == sorted(page_paths("POST"))


@pytest.mark.parametrize("examples", [FEW, MANY])
@pytest.mark.parametrize("path", FORMS)
def test_any_form_is_kept_or_refused_for_a_reason(
    site: AttackedSite, path: str, examples: int
) -> None:
    """No 5xx, and a form of another shape is refused whatever its fields hold."""
    form = FORMS[path]
    headers = {"Content-Type": FORM, **bearer(READ_TOKEN)}
    begun = site.ask("POST", "/boards", headers, b"title=A+board").require_sound()
    key = begun.headers.get("location", "/board/none/edit").split("/")[2]
    required = [field.name for field in structs.fields(form) if field.required]
    names = st.sampled_from([*(field.name for field in structs.fields(form)), "unknown"])
    whole = st.tuples(*(st.tuples(st.just(name), VALUES) for name in required)).map(list)
    more = st.lists(st.tuples(names, VALUES), max_size=3)

    # A wrong token is answered after a second.
    @trying(min(examples, FEW) if path == "/login" else examples)
    @given(st.one_of(whole, more, st.builds(list.__add__, whole, more)))
    def law(sent: list[tuple[str, str]]) -> None:
        body = urlencode(sent).encode()
        address = path.replace("{shelf}", "boards").replace("{key}", key)
        answer = site.ask("POST", address, headers, body).require_sound()
        assert answer.status in ANSWERS
        if is_wrong(form, sent):
            assert answer.status in (400, 413), sent

    law()


def test_a_form_in_another_type_of_body_is_refused(site: AttackedSite) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x", **bearer(READ_TOKEN)}
    part = b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\nA board\r\n--x--\r\n'

    answer = site.ask("POST", "/boards", headers, part)

    assert answer.status == 415
    assert answer.problem
