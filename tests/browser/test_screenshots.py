"""The pictures in the documentation are of the pages as they are, in light and in dark.

They are compared loosely: the noise in their numbers is new in every run.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final, Literal, NamedTuple

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Open
from tests.browser.screenshots import FOLDER, PAGES, SCHEMES, SIZE, shot_of

MOST_BYTES: Final = 150_000
_NEAR: Final = 0.08  # of the whole range of lightness, between two pictures of a page
_LIGHT: Final = 0.5
# Decodes a picture and tells its size, its mean lightness and how many colours it has.
_LOOK: Final = """async (data) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const points = new Uint32Array(canvas.getImageData(0, 0, image.width, image.height).data.buffer);
  let sum = 0;
  const colours = new Set();
  for (const point of points) {
    sum += (point & 255) + ((point >> 8) & 255) + ((point >> 16) & 255);
    colours.add(point);
  }
  return [image.width, image.height, sum / points.length / 765, colours.size];
}"""


class Look(NamedTuple):
    """What a picture looks like from afar."""

    width: int
    height: int
    lightness: float  # 0 is black, 1 is white
    colours: int


def look_of(page: Page, picture: bytes) -> Look:
    return Look(*page.evaluate(_LOOK, b64encode(picture).decode()))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", list(PAGES))
def test_a_picture_is_of_the_page_as_it_is(
    name: str, scheme: Literal["light", "dark"], visit: Open
) -> None:
    picture = (FOLDER / f"{name}-{scheme}.png").read_bytes()
    page, _ = visit("/login", color_scheme=scheme)

    kept, now = look_of(page, picture), look_of(page, shot_of(page, name))

    assert len(picture) <= MOST_BYTES
    assert kept[:2] == now[:2] == (SIZE["width"], SIZE["height"])
    assert kept.lightness == pytest.approx(now.lightness, abs=_NEAR)
    assert (kept.lightness > _LIGHT) == (scheme == "light")
    assert kept.colours > 100


def test_a_blank_picture_and_one_of_the_other_scheme_would_be_noticed(visit: Open) -> None:
    page, _ = visit("/")

    blank = look_of(visit("about:blank")[0], visit("about:blank")[0].screenshot())
    light, dark = (
        look_of(page, (FOLDER / f"overview-{scheme}.png").read_bytes()) for scheme in SCHEMES
    )

    assert blank.colours == 1
    assert light.lightness - dark.lightness > 2 * _NEAR


def test_there_are_no_other_pictures() -> None:
    wanted = {f"{name}-{scheme}.png" for name in PAGES for scheme in SCHEMES}

    assert {path.name for path in FOLDER.glob("*.png")} == wanted
