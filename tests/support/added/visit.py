"""Print what a collector answers by the added verb and page: ``… FOLDER``, for its registry."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.crowds.asked import post, store
from tests.support.crowds.uploads import epoch_today, registry, registry_text
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.store.memory_storage import MemoryStorage

if __name__ == "__main__":
    storage, metric = MemoryStorage(), registry().metric("page")
    store(storage, metric, epoch_today(metric), 40)
    browser = browser_of(in_memory(Path(sys.argv[1]), registry_text(), storage=storage))
    paths = ("/today", "/ask?metric=page&verb=reports", "/v1/openapi.json")
    texts = {path: browser.get(path).text for path in paths}
    answer = post(browser, {"metrics": ["page"], "verb": "reports"}).get_json()
    print(json.dumps([texts, answer]))
