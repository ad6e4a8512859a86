"""llama.cpp's own server, from the wheel xllamacpp, with one model: server.py PORT MODEL [TEMPLATE]

One thread that does not poll: beside other work on a small machine more threads are slower. Two requests run at once,
each with a context of 4,096 tokens.
"""

import sys
import time
from pathlib import Path

import xllamacpp as llama

port, model, *template = sys.argv[1:]
params = llama.CommonParams()
params.model.path, params.model_alias = model, {"smollm2"}
params.hostnames, params.port = ["127.0.0.1"], int(port)
params.n_ctx, params.n_parallel = 8192, 2
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.cpuparams.poll = params.cpuparams_batch.poll = 0
params.ui = False
if template:
    params.chat_template = Path(template[0]).read_text()
server = llama.Server(params)
print(server.listening_address, flush=True)
while True:
    time.sleep(3600)
