"""The work of the store as steps: items, their vectors, searches and lifetimes."""

from __future__ import annotations

import math
import re
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import ormsgpack
from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchItem, SearchOp

from perihelion._database import Steps, read, write
from perihelion._groups import Statement
from perihelion._native import Seal, cosines

MIGRATIONS = [
    [
        """CREATE TABLE IF NOT EXISTS perihelion_items (
            namespace {TEXT} NOT NULL,
            key {TEXT} NOT NULL,
            data {BYTES} NOT NULL,
            created_at {REAL} NOT NULL,
            updated_at {REAL} NOT NULL,
            expires_at {REAL},
            ttl_minutes {REAL},
            PRIMARY KEY (namespace, key)
        )""",
        "CREATE INDEX IF NOT EXISTS perihelion_items_expiry ON perihelion_items (expires_at)",
        """CREATE TABLE IF NOT EXISTS perihelion_vectors (
            namespace {TEXT} NOT NULL,
            key {TEXT} NOT NULL,
            path {TEXT} NOT NULL,
            data {BYTES} NOT NULL,
            PRIMARY KEY (namespace, key, path)
        )""",
        "ALTER TABLE perihelion_items ALTER COLUMN data SET STORAGE EXTERNAL",
        "ALTER TABLE perihelion_vectors ALTER COLUMN data SET STORAGE EXTERNAL",
    ],
]

COLUMNS = "namespace, key, data, created_at, updated_at"

PUT_ITEM = """INSERT INTO perihelion_items
    (namespace, key, data, created_at, updated_at, expires_at, ttl_minutes) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)
    ON CONFLICT (namespace, key) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at,
        expires_at = excluded.expires_at, ttl_minutes = excluded.ttl_minutes"""

PUT_VECTOR = "INSERT INTO perihelion_vectors (namespace, key, path, data) VALUES (?1, ?2, ?3, ?4)"

WORD = re.compile(r"\w+")

Place = tuple[str, str]
"""The namespace as text, and the key."""

Vectors = Mapping[tuple[tuple[str, ...], str], Sequence[tuple[str, Sequence[float]]]]
"""What to store for each item: the path of a text and its vector."""


def joined(namespace: Iterable[str]) -> str:
    """Returns a namespace as text. Labels contain no periods, so each of them ends with one."""
    return "".join(f"{label}." for label in namespace)


def packed(vector: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)


class ItemSteps:
    """Reads and writes items."""

    def __init__(self, seal: Seal, omits_expired: bool, scope: str = "") -> None:
        self.seal = seal
        self.omits_expired = omits_expired
        self.scope = scope
        """What namespaces begin with as texts; no label does, because it is a period and a name."""

    def _joined(self, namespace: Iterable[str]) -> str:
        return self.scope + joined(namespace)

    def _split(self, text: str) -> tuple[str, ...]:
        return tuple(text.removeprefix(self.scope).split(".")[:-1])

    def _bounds(self, prefix: Sequence[str]) -> tuple[str, str, str]:
        """Returns the texts between which all namespaces below a prefix are, and a condition in addition."""
        text = self._joined(prefix)
        return (text, text[:-1] + "/", "") if text else ("", "\U0010ffff", " AND namespace NOT LIKE '.%'")

    def batch(
        self, ops: Sequence[Any], vectors: Vectors, queries: Mapping[str, Sequence[float]]
    ) -> Steps[list[Any]]:
        """Runs operations: first all that read, then all that write. The last write to an item counts."""
        results: list[Any] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            result: Any = None
            if isinstance(op, GetOp):
                result = yield from self._get(op)
            elif isinstance(op, SearchOp):
                result = yield from self._search(op, queries.get(op.query or ""))
            elif isinstance(op, ListNamespacesOp):
                result = yield from self._namespaces(op)
            elif isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
            else:
                raise ValueError(f"unknown operation: {type(op)}")
            results.append(result)
        statements: list[Statement] = []
        for place, op in puts.items():
            statements += self._put(op, vectors.get(place, ()))
        if statements:
            yield write(*statements)
        return results

    def _alive(self, number: int) -> tuple[str, list[float]]:
        if not self.omits_expired:
            return "", []
        return f" AND (expires_at IS NULL OR expires_at > ?{number})", [time.time()]

    def _item(self, row: Sequence[Any], kind: Callable[..., Any] = Item, **more: Any) -> Any:
        namespace, key, data, created_at, updated_at = row
        return kind(
            value=self._value(data),
            key=key,
            namespace=self._split(namespace),
            created_at=datetime.fromtimestamp(created_at, timezone.utc),
            updated_at=datetime.fromtimestamp(updated_at, timezone.utc),
            **more,
        )

    def _value(self, data: bytes) -> Any:
        return ormsgpack.unpackb(self.seal.open(data, "item"), option=ormsgpack.OPT_NON_STR_KEYS)

    def _get(self, op: GetOp) -> Steps[Item | None]:
        place = (self._joined(op.namespace), op.key)
        alive, now = self._alive(3)
        sql = f"SELECT {COLUMNS} FROM perihelion_items WHERE namespace = ?1 AND key = ?2{alive}"
        (found,) = yield read((sql, (*place, *now)))
        if not found:
            return None
        if op.refresh_ttl:
            yield from self._refresh([place])
        return self._item(found[0])  # type: ignore[no-any-return]

    def _refresh(self, places: Iterable[Place]) -> Steps[None]:
        now = time.time()
        alive, also = self._alive(3)
        sql = (
            "UPDATE perihelion_items SET expires_at = ?3 + ttl_minutes * 60 "
            f"WHERE namespace = ?1 AND key = ?2 AND ttl_minutes IS NOT NULL{alive}"
        )
        looked = "SELECT ttl_minutes FROM perihelion_items WHERE namespace = ?1 AND key = ?2 AND ttl_minutes IS NOT NULL"
        places = list(places)
        answers = yield read(*((looked, place) for place in places))
        batch = [(sql, (*place, also[0] if also else now)) for place, found in zip(places, answers, strict=True) if found]
        if batch:
            yield write(*batch)

    def _put(self, op: PutOp, vectors: Sequence[tuple[str, Sequence[float]]]) -> list[Statement]:
        place = (self._joined(op.namespace), op.key)
        where = "WHERE namespace = ?1 AND key = ?2"
        statements: list[Statement] = [(f"DELETE FROM perihelion_vectors {where}", place)]
        if op.value is None:
            return [*statements, (f"DELETE FROM perihelion_items {where}", place)]
        now = time.time()
        data = self.seal.seal(ormsgpack.packb(op.value, option=ormsgpack.OPT_NON_STR_KEYS), "item")
        expires_at = None if op.ttl is None else now + op.ttl * 60
        ttl = None if op.ttl is None else float(op.ttl)
        statements.append((PUT_ITEM, (*place, data, now, expires_at, ttl)))
        for path, vector in vectors:
            statements.append((PUT_VECTOR, (*place, path, self.seal.seal(packed(vector), "vector"))))
        return statements

    def _search(self, op: SearchOp, query: Sequence[float] | None) -> Steps[list[SearchItem]]:
        low, high, own = self._bounds(op.namespace_prefix)
        alive, now = self._alive(3)
        sql = f"SELECT {COLUMNS} FROM perihelion_items WHERE namespace >= ?1 AND namespace < ?2{own}{alive} ORDER BY updated_at DESC"
        values: list[str | float] = [low, high, *now]
        if not op.filter and not op.query:
            sql += f" LIMIT ?{len(values) + 1} OFFSET ?{len(values) + 2}"
            values += [int(op.limit), int(op.offset)]
        (found,) = yield read((sql, values))
        items = {(row[0], row[1]): self._item(row, SearchItem) for row in found}
        if op.filter:
            items = {place: item for place, item in items.items() if matches(item.value, op.filter)}
        if op.query:
            if query is None:
                scores = by_words(items, op.query)
            else:
                scores = yield from self._similar(low, high, query)
            ranked = sorted((place for place in items if place in scores), key=lambda place: -scores[place])
            for place in ranked:
                items[place].score = scores[place]
            ranked += [place for place in items if place not in scores]
            items = {place: items[place] for place in ranked}
        if op.filter or op.query:
            chosen = list(items)[op.offset : op.offset + op.limit]
            items = {place: items[place] for place in chosen}
        if op.refresh_ttl and items:
            yield from self._refresh(items)
        return list(items.values())

    def _similar(self, low: str, high: str, query: Sequence[float]) -> Steps[dict[Place, float]]:
        """Returns the similarity of each item by its best text."""
        sql = "SELECT namespace, key, data FROM perihelion_vectors WHERE namespace >= ?1 AND namespace < ?2"
        (found,) = yield read((sql, (low, high)))
        vectors = [self.seal.open(row[2], "vector") for row in found]
        scores: dict[Place, float] = {}
        for (namespace, key, _), score in zip(found, cosines(packed(query), vectors), strict=True):
            scores[namespace, key] = max(score, scores.get((namespace, key), -1.0))
        return scores

    def _namespaces(self, op: ListNamespacesOp) -> Steps[list[tuple[str, ...]]]:
        low, high, own = self._bounds(())
        alive, now = self._alive(3)
        sql = f"SELECT DISTINCT namespace FROM perihelion_items WHERE namespace >= ?1 AND namespace < ?2{own}{alive}"
        (found,) = yield read((sql, (low, high, *now)))
        namespaces = {self._split(row[0]) for row in found}
        for condition in op.match_conditions or ():
            namespaces = {namespace for namespace in namespaces if fits(namespace, condition)}
        if op.max_depth is not None:
            namespaces = {namespace[: op.max_depth] for namespace in namespaces}
        return sorted(namespaces)[op.offset : op.offset + op.limit]

    def sweep(self) -> Steps[int]:
        """Deletes expired items and returns how many."""
        now = time.time()
        where = "WHERE expires_at IS NOT NULL AND expires_at <= ?1"
        vectors = (
            "DELETE FROM perihelion_vectors WHERE EXISTS (SELECT 1 FROM perihelion_items AS item "
            "WHERE item.namespace = perihelion_vectors.namespace AND item.key = perihelion_vectors.key "
            "AND item.expires_at IS NOT NULL AND item.expires_at <= ?1)"
        )
        _, deleted = yield write((vectors, (now,)), (f"DELETE FROM perihelion_items {where} RETURNING key", (now,)))
        return len(deleted)


def by_words(items: Mapping[Place, Item], query: str) -> dict[Place, float]:
    """Returns the BM25 score of the items that have a word of the query."""
    wanted = set(words(query))
    counts = {place: Counter(words(texts(item.value))) for place, item in items.items()}
    average = sum(count.total() for count in counts.values()) / max(1, len(counts)) or 1.0
    scores: dict[Place, float] = {}
    for word in wanted:
        having = [place for place, count in counts.items() if word in count]
        rarity = math.log(1 + (len(counts) - len(having) + 0.5) / (len(having) + 0.5))
        for place in having:
            count = counts[place][word]
            length = 0.25 + 0.75 * counts[place].total() / average
            scores[place] = scores.get(place, 0.0) + rarity * count * 2.2 / (count + 1.2 * length)
    return scores


def words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def texts(value: Any) -> str:
    """Returns all texts of a value."""
    if isinstance(value, Mapping):
        return " ".join(texts(one) for one in value.values())
    if isinstance(value, (list, tuple)):
        return " ".join(texts(one) for one in value)
    return str(value)


def fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as a condition demands; `*` is any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def matches(value: Any, wanted: Any) -> bool:
    """Whether a value fits a filter: equal values, nested ones, and `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`."""
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    operators = [key for key in wanted if isinstance(key, str) and key.startswith("$")]
    if operators:
        return all(_compared(value, operator, wanted[operator]) for operator in operators)
    return isinstance(value, Mapping) and all(matches(_field(value, key), one) for key, one in wanted.items())


def _field(value: Any, key: str) -> Any:
    """Returns a field, or one further down by a path with periods."""
    if not isinstance(value, Mapping):
        return None
    first, dot, rest = key.partition(".")
    return _field(value.get(first), rest) if dot and key not in value else value.get(key)


def _compared(value: Any, operator: str, wanted: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(value == wanted) is (operator == "$eq")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"unknown operator, use $eq, $ne, $gt, $gte, $lt or $lte: {operator}")
    try:
        is_text = isinstance(value, str) and isinstance(wanted, str)
        one: Any = value if is_text else float(value)
        other: Any = wanted if is_text else float(wanted)
    except (TypeError, ValueError):
        return False
    if operator in ("$gt", "$gte"):
        return bool(one > other) or (operator == "$gte" and bool(one == other))
    return bool(one < other) or (operator == "$lte" and bool(one == other))
