"""Forked children: each opens the database for itself and waits for no lock of its parent."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from client_sdk.core.errors import StoreError
from client_sdk.storage.store import Store

INSERT = "INSERT INTO charges VALUES (x'', x'00', 0)"
COUNT = "SELECT count(*) FROM charges"


def insert(store: Store) -> None:
    with store.transaction() as tx:
        tx.execute(INSERT)


def _insert_in_child(store: Store, results: multiprocessing.SimpleQueue[str]) -> None:
    try:
        insert(store)
    except StoreError as error:
        results.put(str(error))
    else:
        results.put("inserted")
    finally:
        store.close()


def _outcome_in_forked_child(store: Store) -> str:
    context = multiprocessing.get_context("fork")
    results: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    child = context.Process(target=_insert_in_child, args=(store, results))
    child.start()
    child.join(timeout=20)
    if child.is_alive():
        child.kill()
        child.join()
    return "hung" if results.empty() else results.get()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_opens_the_file_for_itself(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.transaction() as tx:
        tx.execute("INSERT INTO charges VALUES (x'', x'01', 0)")

    outcome = _outcome_in_forked_child(store)

    with store.transaction() as tx:
        assert (outcome, tx.execute(COUNT).fetchone()) == ("inserted", (2,))
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_not_stopped_by_a_lock_of_its_parent(tmp_path: Path) -> None:
    store = Store(tmp_path)

    with store._lock:
        outcome = _outcome_in_forked_child(store)

    assert outcome == "inserted"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("used", [True, False])
def test_a_store_in_memory_is_refused_in_a_forked_child(used: bool) -> None:
    """Used before or not: else every child would spend the caps anew."""
    store = Store(None)
    if used:
        insert(store)

    outcome = _outcome_in_forked_child(store)

    assert outcome == "data_dir=None: a store in memory ends at a fork"
