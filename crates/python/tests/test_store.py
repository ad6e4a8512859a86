"""The store: namespaces, filters, search by words and meaning, lifetimes, encryption."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from perihelion import AsyncPerihelionStore, PerihelionSaver, PerihelionStore


def embed(texts: list[str]) -> list[list[float]]:
    """Counts letters: alike texts have alike vectors."""
    return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


@pytest.fixture
def store(address: str) -> Any:
    with PerihelionStore.from_conn_string(address) as store:
        yield store


def test_items_are_stored_changed_and_deleted(store: PerihelionStore) -> None:
    store.put(("users", "ada"), "likes", {"text": "tea", "nested": {"list": [1, "zwei", None]}})
    first = store.get(("users", "ada"), "likes")
    assert first and first.value == {"text": "tea", "nested": {"list": [1, "zwei", None]}}
    assert (first.namespace, first.key) == (("users", "ada"), "likes")
    store.put(("users", "ada"), "likes", {"text": "coffee"})
    second = store.get(("users", "ada"), "likes")
    assert second and second.value == {"text": "coffee"}
    assert second.created_at == first.created_at and second.updated_at > first.updated_at
    store.delete(("users", "ada"), "likes")
    assert store.get(("users", "ada"), "likes") is None


def test_operations_of_a_batch_answer_in_order(store: PerihelionStore) -> None:
    store.put(("a",), "k", {"n": 1})
    results = store.batch(
        [
            PutOp(("a",), "k", {"n": 2}),
            GetOp(("a",), "k"),
            SearchOp(("a",)),
            ListNamespacesOp(),
            PutOp(("a",), "k", {"n": 3}),
            GetOp(("a",), "none"),
        ]
    )
    assert results[0] is None and results[4] is None and results[5] is None
    assert results[1].value == {"n": 1}  # type: ignore[union-attr]
    assert store.get(("a",), "k").value == {"n": 3}  # type: ignore[union-attr]


def test_a_search_stays_within_its_namespace(store: PerihelionStore) -> None:
    for namespace in (("a",), ("a", "b"), ("ab",), ("a%",), ("a_b", "c"), ("b",)):
        store.put(namespace, "k", {"at": list(namespace)})
    assert {item.namespace for item in store.search(("a",))} == {("a",), ("a", "b")}
    assert len(store.search(())) == 6
    assert [item.namespace for item in store.search(("a%",))] == [("a%",)]


def test_a_scoped_store_has_items_of_its_own(store: PerihelionStore) -> None:
    stores = [store, store._scoped("a"), store._scoped("a.b")]
    for number, one in enumerate(stores):
        one.put(("a", "b"), "k", {"n": number})
        one.put((str(number),), "k", {"n": number})
    for number, one in enumerate(stores):
        assert one.get(("a", "b"), "k").value == {"n": number}  # type: ignore[union-attr]
        assert {item.value["n"] for item in one.search(())} == {number}
        assert {item.namespace for item in one.search((), filter={"n": number})} == {("a", "b"), (str(number),)}
        assert one.list_namespaces() == [(str(number),), ("a", "b")]
        one.delete(("a", "b"), "k")
        assert [item.namespace for item in one.search(())] == [(str(number),)]


def test_pages_are_read_by_one_statement(store: PerihelionStore) -> None:
    for i in range(10):
        store.put(("n",), str(i), {"i": i})
    groups, asked = store._connection._groups, set()
    run = groups.run

    def noting(batch: Any, kind: Any) -> Any:
        asked.update(sql for sql, _ in batch)
        return run(batch, kind)

    groups.run = noting  # type: ignore[method-assign]
    pages = [store.search(("n",), limit=limit, offset=offset) for limit, offset in ((1, 0), (2, 1), (3, 3), (4, 6))]
    assert len({item.key for page in pages for item in page}) == 10
    assert len([sql for sql in asked if "LIMIT" in sql]) == 1


def test_a_connection_keeps_few_prepared_statements(address: str) -> None:
    if not address.startswith("postgres"):
        pytest.skip("SQLite bounds them")
    with PerihelionStore.from_conn_string(address, pool_size=1) as store:
        for number in range(700):
            store._connection.native.run([(f"SELECT {number}", ())], False)
        (((count,),),) = store._connection.native.run([("SELECT count(*) FROM pg_prepared_statements", ())], False)
        assert count < 300


def test_filters_compare(store: PerihelionStore) -> None:
    for i in range(10):
        store.put(("n",), str(i), {"i": i, "even": i % 2 == 0, "in": {"x": i}})
    found = store.search(("n",), filter={"i": {"$gte": 3, "$lt": 8}, "even": True}, limit=100)
    assert {item.value["i"] for item in found} == {4, 6}
    assert len(store.search(("n",), filter={"i": {"$ne": 3}}, limit=100)) == 9
    assert [item.value["i"] for item in store.search(("n",), filter={"in": {"x": 7}})] == [7]
    pages = [store.search(("n",), filter={"even": True}, limit=2, offset=offset) for offset in (0, 2, 4)]
    assert len({item.key for page in pages for item in page}) == 5
    with pytest.raises(ValueError, match="unknown operator"):
        store.search(("n",), filter={"i": {"$regex": 1}})


def test_words_are_searched_without_an_index(store: PerihelionStore) -> None:
    store.put(("d",), "tea", {"text": "Green tea from Uji, green and bright"})
    store.put(("d",), "coffee", {"text": "Dark coffee"})
    store.put(("d",), "both", {"text": "Coffee or tea"})
    found = store.search(("d",), query="green tea")
    assert [item.key for item in found] == ["tea", "both", "coffee"]
    assert found[0].score and found[1].score and found[0].score > found[1].score and found[2].score is None


def test_meaning_is_searched_with_an_index(address: str) -> None:
    with PerihelionStore.from_conn_string(address, index={"dims": 26, "embed": embed, "fields": ["text"]}) as store:
        store.put(("d",), "a", {"text": "aaaa bb"})
        store.put(("d",), "z", {"text": "zzzz yy"})
        store.put(("d",), "unseen", {"text": "aaaa"}, index=False)
        store.put(("d",), "other", {"title": "zzzz", "text": "q"}, index=["title"])
        found = store.search(("d",), query="aab")
        assert found[0].key == "a" and found[0].score and found[0].score > 0.9
        assert {item.key for item in store.search(("d",), query="z")[:2]} == {"z", "other"}
        assert next(item for item in found if item.key == "unseen").score is None
        store.put(("d",), "a", {"text": "qqqq"})
        assert store.search(("d",), query="q")[0].score == pytest.approx(1)


def test_namespaces_are_listed(store: PerihelionStore) -> None:
    for namespace in (("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z",)):
        store.put(namespace, "k", {})
    assert store.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d")]
    assert store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(max_depth=1) == [("a",), ("z",)]
    conditions = (MatchCondition("prefix", ("a", "*", "c")),)
    found = store.batch([ListNamespacesOp(match_conditions=conditions)])[0]
    assert found == [("a", "b", "c"), ("a", "x", "c")]


def test_wrong_namespaces_are_refused_in_batches_too(store: PerihelionStore) -> None:
    for namespace in (("a.b",), ("",), ("a", "b\0")):
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(namespace, "k", {})])


@pytest.mark.parametrize("omits", [True, False])
def test_items_expire(address: str, omits: bool) -> None:
    second = 1 / 60
    ttl: Any = {"default_ttl": second, "refresh_on_read": False, "omit_expired": omits}
    with PerihelionStore.from_conn_string(address, ttl=ttl) as store:
        store.put(("t",), "short", {})
        store.put(("t",), "long", {}, ttl=60)
        store.put(("t",), "ever", {}, ttl=None)
        time.sleep(1.1)
        assert (store.get(("t",), "short") is None) is omits
        assert len(store.search(("t",))) == (2 if omits else 3)
        assert store.sweep_ttl() == 1
        assert {item.key for item in store.search(("t",))} == {"long", "ever"}


def test_reading_extends_a_lifetime_and_the_sweeper_ends_it(address: str) -> None:
    ttl: Any = {"default_ttl": 1.5 / 60, "refresh_on_read": True}
    with PerihelionStore.from_conn_string(address, ttl=ttl) as store:
        store.start_ttl_sweeper(sweep_interval_minutes=0.1 / 60)  # type: ignore[arg-type]
        store.put(("t",), "k", {})
        for _ in range(4):
            time.sleep(0.6)
            assert store.get(("t",), "k")
        for _ in range(100):
            if not store.get(("t",), "k", refresh_ttl=False):
                break
            time.sleep(0.1)
        assert store.get(("t",), "k", refresh_ttl=False) is None
        assert store.stop_ttl_sweeper()


def test_the_sweeper_survives_an_error_of_the_database(address: str, caplog: pytest.LogCaptureFixture) -> None:
    with PerihelionStore.from_conn_string(address) as store:
        store.setup()
        sweep, failures = store._steps.sweep, iter([RuntimeError("no connection")])

        def fails_once() -> Any:
            for error in failures:
                raise error
            return sweep()

        store._steps.sweep = fails_once  # type: ignore[method-assign]
        store.put(("t",), "k", {}, ttl=0)
        store.start_ttl_sweeper(sweep_interval_minutes=0.1 / 60)  # type: ignore[arg-type]
        for _ in range(100):
            if not store.search(("t",)):
                break
            time.sleep(0.1)
        assert not store.search(("t",)) and "no connection" in caplog.text


async def test_the_store_is_used_from_a_loop(address: str) -> None:
    async with AsyncPerihelionStore.from_conn_string(address) as store:
        await store.aput(("a",), "k", {"text": "tea"})
        item = await store.aget(("a",), "k")
        assert item and item.value == {"text": "tea"}
        assert [one.key for one in await store.asearch(("a",), query="tea")] == ["k"]
        assert await store.alist_namespaces() == [("a",)]
        assert store.get(("a",), "k") == item
        assert await store.sweep_ttl() == 0


def test_an_encrypted_store_shows_no_values(tmp_path: Path) -> None:
    path = str(tmp_path / "agents.db")
    with (
        PerihelionStore.from_conn_string(path, encryption_key=b"k" * 32) as store,
        PerihelionSaver.from_conn_string(path) as saver,
    ):
        saver.setup()
        store.put(("a",), "k", {"text": "a secret"})
        assert store.get(("a",), "k").value == {"text": "a secret"}  # type: ignore[union-attr]
    assert b"a secret" not in Path(path).read_bytes()
