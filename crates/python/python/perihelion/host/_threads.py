"""The threads of the server that have checkpoints here, for the server to find those that it no longer has."""

from __future__ import annotations

import asyncio
from typing import Any

from perihelion._groups import Kind
from perihelion._rows import unpack_checkpoint
from perihelion.host._position import LINE
from perihelion.host._project import Project

# One look into the index for each thread, however many checkpoints it has.
PAGE = """WITH RECURSIVE found (id) AS (
    SELECT min(thread_id) FROM perihelion_checkpoints WHERE thread_id > ?1
    UNION ALL
    SELECT (SELECT min(thread_id) FROM perihelion_checkpoints WHERE thread_id > found.id) FROM found WHERE found.id IS NOT NULL
) SELECT id FROM found WHERE id IS NOT NULL LIMIT 200"""

NEWEST = """SELECT data FROM perihelion_checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ''
    ORDER BY checkpoint_id DESC LIMIT 1"""


async def page(project: Project, order: dict[str, Any]) -> list[str]:
    """Lists the next threads that have checkpoints, without their states."""
    return [thread for (thread,) in await _rows(project, PAGE, order["after"])]


async def delete(project: Project, order: dict[str, Any]) -> None:
    """Deletes the checkpoints of a thread, if a graph of a server wrote them; others of the database are not touched."""
    thread = order["thread"]
    for (data,) in await _rows(project, NEWEST, thread):
        _, metadata = unpack_checkpoint(project.saver._seal, data)
        if LINE in project.saver.serde.loads_typed(metadata):
            await project.saver.adelete_thread(thread)


async def _rows(project: Project, sql: str, value: str) -> Any:
    def steps() -> Any:
        (rows,) = yield [(sql, (value,))], Kind.READ
        return rows

    await asyncio.to_thread(project.saver.setup)
    return await project.saver._connection.arun(steps())
