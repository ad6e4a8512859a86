# Appended to the conftest.py of LangGraph's own tests by run.sh: their fixtures, with Perihelion's savers.
import tempfile as _tempfile

import pytest as _pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer as _EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer as _JsonPlusSerializer
from perihelion import AsyncPerihelionSaver as _AsyncPerihelionSaver
from perihelion import PerihelionSaver as _PerihelionSaver

_WAYS = os.environ["PERIHELION_WAYS"].split()


def _saver(kind, way):
    if way == "sqlite":
        return kind(_tempfile.mkdtemp() + "/agents.db")
    if way == "postgres":
        saver = kind(os.environ["TEST_DATABASE_URL"])
        saver._prepare()
        tables = "perihelion_checkpoints, perihelion_values, perihelion_writes"
        saver._connection.native.run([(f"TRUNCATE {tables}", ())], True)
        return saver
    options = {
        "memory": {},
        "strict": {"strict": True},
        "sealed": {"encryption_key": b"k" * 32},
        "permissive": {"serde": _JsonPlusSerializer()},
        "aes": {"serde": _EncryptedSerializer.from_pycryptodome_aes(key=b"1234567890123456")},
    }
    return kind(":memory:", **options[way])


@_pytest.fixture(params=_WAYS)
def sync_checkpointer(request):
    saver = _saver(_PerihelionSaver, request.param)
    yield saver
    saver.close()


@_pytest.fixture(params=_WAYS)
async def async_checkpointer(request):
    saver = _saver(_AsyncPerihelionSaver, request.param)
    yield saver
    saver.close()
