"""The databases of the servers that the tests start."""

from __future__ import annotations

import pytest
from databases import POSTGRES, new_database
from hosted_server import PROGRAM, Server
from langgraph_sdk.client import SyncLangGraphClient


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not PROGRAM:
        for item in items:
            if "hosted" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="HOSTED_PROGRAM names no program"))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path_factory.mktemp('database') / 'hosted.db'}"
    if not POSTGRES:
        pytest.skip("TEST_DATABASE_URL is not set")
    return new_database()[1]


@pytest.fixture
def client(server: Server) -> SyncLangGraphClient:
    return server.client
