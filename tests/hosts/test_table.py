"""The hosts of the guide: each of its rows is one that a test installs and runs."""

from __future__ import annotations

import re
from typing import Final

from . import test_bundles, test_children, test_patched, test_servers
from .hosted import ROOT

TESTS: Final = {
    "gunicorn, granian": test_servers.test_a_server_answers_and_loses_nothing,
    "gunicorn of gevent": test_servers.test_a_server_answers_and_loses_nothing,
    "gevent, eventlet": test_patched.test_a_program_of_greenlets_goes_on_and_loses_nothing,
    "uWSGI": test_servers.test_a_worker_of_uwsgi_is_at_work_before_it_records,
    "uWSGI without `enable-threads`": (
        test_servers.test_many_values_of_uwsgi_without_threads_share_a_transaction
    ),
    "Flask": test_servers.test_requests_below_a_server_add_up_over_its_workers,
    "Django": test_servers.test_requests_below_a_server_add_up_over_its_workers,
    "Starlette, FastAPI, any ASGI": (
        test_servers.test_requests_below_a_server_add_up_over_its_workers
    ),
    "Celery": test_children.test_workers_of_a_queue_lose_nothing,
    "Huey": test_children.test_workers_of_a_queue_lose_nothing,
    "RQ": test_children.test_jobs_of_rq_that_close_their_client_lose_nothing,
    "multiprocessing": test_children.test_a_pool_that_is_closed_loses_nothing,
    "PyInstaller": test_bundles.test_a_program_of_one_file_records,
    "zipapp, shiv": test_bundles.test_shiv_packs_a_program_that_records,
}


def test_every_host_of_the_guide_is_run_by_a_test() -> None:
    """Law: a row is added with the test that runs its host."""
    page = (ROOT / "docs" / "guide" / "embed.md").read_text(encoding="utf-8")
    section = page.partition("\n### Hosts\n")[2].partition("\n#")[0]
    head, *rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)

    assert head == "host"
    assert set(rows) == set(TESTS)
