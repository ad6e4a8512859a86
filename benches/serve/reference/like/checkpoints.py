"""Keeps the checkpoints on Postgres, as ours are kept."""

import os
from contextlib import asynccontextmanager

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool


@asynccontextmanager
async def keep():
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(
            os.environ["CHECKPOINTS_URL"], min_size=32, max_size=32, kwargs=options, open=False) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        yield saver
