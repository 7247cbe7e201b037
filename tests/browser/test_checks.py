"""The checks of accessibility find what they are for: every rule is shown a page that breaks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.sites.browsing import Watch, faults_of, unwatched, watched

SOUND = """<!doctype html><html lang="en"><title>Sound</title>
<style>
  body {{ background: #fff; color: #222 }}
  button {{ min-width: 30px; min-height: 30px }}
  .small {{ min-width: 9px; min-height: 9px; width: 9px; height: 9px }}
</style>
<body><main><h1>Sound</h1>{}</main></body></html>"""
BROKEN = {
    "heading": "<h3>Too deep</h3>",
    "id": "<p id='a'>a</p><p id='a'>b</p>",
    "reference": "<p aria-labelledby='nothing'>a</p>",
    "name": "<button></button>",
    "alternative": "<svg width='9' height='9'><rect width='9' height='9'/></svg>",
    "role": "<p role='buton'>a</p>",
    "script": "<p onclick='x()'>a</p>",
    "order": "<p tabindex='3'>a</p>",
    "table": "<table><tr><td>a</td></tr></table>",
    "list": "<ul><p>a</p></ul>",
    "scroll": "<div style='overflow:auto;width:50px;white-space:nowrap'>a long line of text</div>",
    "reflow": "<div style='width:3000px'>a</div>",
    "target": "<button class='small' title='a'></button>",
    "contrast": "<p style='color:#888'>grey</p>",
    "letters": "<p style='font-size:9px'>small</p>",
    "landmark": "</main><p>outside</p><main>",
}


@pytest.fixture(scope="module")
def blank(browser: Browser) -> Iterator[tuple[Page, Watch]]:
    with watched(browser, "http://127.0.0.1:1") as opened:
        yield opened


def test_a_sound_page_has_no_faults(blank: tuple[Page, Watch]) -> None:
    page, _ = blank
    page.set_content(SOUND.format("<p>a <a href='/x'>link</a></p><button>Go</button>"))

    assert faults_of(page) == []


@pytest.mark.parametrize("rule", list(BROKEN))
def test_every_rule_finds_what_breaks_it(blank: tuple[Page, Watch], rule: str) -> None:
    page, _ = blank
    page.set_content(SOUND.format(BROKEN[rule]))

    assert rule in {fault.partition(":")[0] for fault in faults_of(page)}


def test_the_contrast_of_a_text_on_a_bar_is_that_with_the_bar(blank: tuple[Page, Watch]) -> None:
    page, _ = blank
    drawing = (
        "<svg role='img' aria-label='x' width='99' height='30'>"
        "<rect width='99' height='30' fill='#333'/><text x='5' y='20' fill='{}'>text</text></svg>"
    )

    page.set_content(SOUND.format(drawing.format("#222")))
    assert [fault for fault in faults_of(page) if fault.startswith("contrast")]

    page.set_content(SOUND.format(drawing.format("#fff")))
    assert faults_of(page) == []


@pytest.mark.parametrize(
    "deed",
    [
        "console.error('x')",
        "setTimeout(() => { throw new Error('x') })",
        "alert(1)",
        "fetch('http://127.0.0.2:9/').catch(() => {})",
        "document.dispatchEvent(new SecurityPolicyViolationEvent('securitypolicyviolation'))",
    ],
)
def test_the_watch_sees_what_no_page_may_do(browser: Browser, deed: str) -> None:
    with unwatched(browser, "http://127.0.0.1:1") as (page, watch):
        page.goto("about:blank")
        page.evaluate(f"() => {{ {deed} }}")
        page.wait_for_timeout(300)

    assert len(watch.faults) >= 1
