/** The real program, serving on a port of its own from a directory of its own. */

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

export const ROOT = new URL("../../", import.meta.url).pathname;
const PROGRAM = process.env.PERIHELION ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "debug/perihelion");

const SERVERS = `
[mcp_servers.notes]
description = "keeps notes"
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
default_tools_approval_mode = "prompt"

[mcp_servers.files]
description = "reads the papers of this directory"
command = "perihelion"
args = ["mcp", "files", "--root", "."]
default_tools_effect = "read_only"
`;

/** Further servers, for the tests that ask for them by name. */
const FURTHER = {
  papers: `
[mcp_servers.papers]
description = "knows the documents that were added"
command = "perihelion"
args = ["mcp", "documents"]
env_vars = ["DATABASE_URL", "HOME", "XDG_DATA_HOME"]
agent = "documents"
`,
  greeter: `
[mcp_servers.greeter]
description = "greets people"
command = "node"
args = [${JSON.stringify(new URL("greeter.mjs", import.meta.url).pathname)}, "greeting.txt"]
`,
  asker: `
[mcp_servers.asker]
description = "orders, pays and posts"
command = "node"
args = [${JSON.stringify(new URL("asker.mjs", import.meta.url).pathname)}, "asked"]
`,
  absent: `
[mcp_servers.absent]
description = "is not there"
command = "no-such-program-anywhere"
`,
};

/** Finds a port that is free now, so that a server that was killed comes back at the same address. */
export async function freePort() {
  const probe = createServer();
  await new Promise((ready) => probe.listen(0, "127.0.0.1", ready));
  const { port } = probe.address();
  await new Promise((closed) => probe.close(closed));
  return port;
}

/** Starts `perihelion serve`: with the model of that address, or as its demo; with a token, for those who know it or register; or an example with graphs of its own; a bare one has no servers. Its environment may depend on its address. */
export async function startServer({ model, token, further = [], env: more = {}, settings = "", example, bare = false } = {}) {
  const home = await mkdtemp(join(tmpdir(), "perihelion-page-"));
  await writeFile(join(home, "mcp-servers.toml"), example || bare ? "" : SERVERS + further.map((name) => FURTHER[name]).join(""));
  if (settings) await writeFile(join(home, "perihelion.toml"), settings);
  await writeFile(join(home, "greeting.txt"), "Greets somebody.\n");
  await writeFile(join(home, "paper.md"), "# Paper\n\nThe perihelion of Mercury moves by 43 seconds of arc a century more than Newton has it.\n");
  const port = await freePort();
  const env = {
    PATH: `${dirname(PROGRAM)}:${process.env.PATH}`,
    HOME: home,
    XDG_DATA_HOME: join(home, "data"),
    XDG_CACHE_HOME: join(home, "cache"),
    DATABASE_URL: "sqlite:threads.db",
    ...(token && { PERIHELION_SERVE_TOKEN: token, PERIHELION_SERVE_REGISTRATION: "true" }),
    ...(model && { OPENAI_BASE_URL: model, OPENAI_API_KEY: "sk-test", OPENAI_MODEL: "scripted", PERIHELION_MODELS_PROTOCOL: "full" }),
    ...(typeof more === "function" ? more(`http://127.0.0.1:${port}`) : more),
  };
  const server = { url: `http://127.0.0.1:${port}`, home };
  const program = example ? join(dirname(PROGRAM), "examples", example) : PROGRAM;
  const spawned = (args) => spawn(program, args, { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
  let child;

  server.start = async () => {
    child = spawned(["serve", "--addr", `127.0.0.1:${port}`, ...(model ? [] : ["--demo"])]);
    child.stdout.resume();
    const said = [];
    const lines = createInterface(child.stderr);
    await new Promise((ready, failed) => {
      lines.on("line", (line) => {
        said.push(line);
        if (line.includes("at http://")) ready();
      });
      child.on("exit", () => failed(new Error(`the server ended: ${said.join("\n")}`)));
    });
  };
  /** Kills it as a crash would. */
  server.kill = async () => {
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await ended;
  };
  /** Runs the program beside the server, over the same database. */
  server.program = async (...args) => {
    const other = spawned(args);
    other.stdout.resume();
    other.stderr.resume();
    const code = await new Promise((done) => other.once("exit", done));
    if (code !== 0) throw new Error(`perihelion ${args.join(" ")} ended with ${code}`);
  };
  server.stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      child.kill("SIGTERM");
      await ended;
    }
    await rm(home, { recursive: true, force: true });
  };
  server.json = async (path, body) => {
    const init = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return (await fetch(`${server.url}${path}`, init)).json();
  };
  await server.start();
  return server;
}
