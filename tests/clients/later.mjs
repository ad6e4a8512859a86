// Drives the later endpoints with @langchain/langgraph-sdk 1.15.0: assistants, items, crons, batches, webhooks, pruning.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { client, collect, human, run } from "./cases.mjs";

// A server that is called back; `next` waits for the next call.
const receiver = async () => {
  const [calls, waiting] = [[], []];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    response.end();
    const call = { headers: request.headers, body: JSON.parse(Buffer.concat(chunks)) };
    waiting.length > 0 ? waiting.shift()(call) : calls.push(call);
  });
  await new Promise((done) => { server.listen(0, "127.0.0.1", done); });
  return {
    url: `http://127.0.0.1:${server.address().port}/called`,
    next: () => calls.length > 0 ? calls.shift() : new Promise((done) => { waiting.push(done); }),
    isEmpty: () => calls.length === 0,
    close: () => server.close(),
  };
};

const refused = async (status, asked) => {
  await assert.rejects(asked, (error) => { assert.equal(error.status, status, String(error)); return true; });
};

await run({
  async "assistants are made, versioned, searched and deleted"() {
    const made = await client.assistants.create({
      graphId: "swarm", name: "js beta", metadata: { by: "js" }, config: { recursion_limit: 50 }, context: { k: "v" },
    });
    const id = made.assistant_id;
    assert.deepEqual([made.version, made.config.recursion_limit, made.context], [1, 50, { k: "v" }]);
    const changed = await client.assistants.update(id, { name: "js gamma", description: "Changed." });
    assert.deepEqual([changed.version, changed.description, changed.metadata], [2, "Changed.", { by: "js" }]);
    assert.deepEqual((await client.assistants.getVersions(id)).map((one) => one.version), [2, 1]);
    assert.deepEqual((await client.assistants.getVersions(id, { limit: 1, offset: 1 })).map((one) => one.version), [1]);
    assert.equal((await client.assistants.setLatest(id, 1)).name, "js beta");
    const other = await client.assistants.create({ graphId: "swarm", name: "js alpha", metadata: { by: "js" } });
    const query = { metadata: { by: "js" }, sortBy: "name", sortOrder: "asc" };
    const names = (await client.assistants.search({ ...query, select: ["name"] })).map((one) => one.name);
    assert.deepEqual(names, ["js alpha", "js beta"]);
    const page = await client.assistants.search({ ...query, limit: 1, includePagination: true });
    assert.deepEqual([page.assistants.length, page.next], [1, "1"]);
    assert.equal(await client.assistants.count({ metadata: { by: "js" } }), 2);
    assert.deepEqual(await client.assistants.getSubgraphs(id), {});
    assert.ok((await client.assistants.getSchemas(id)).input_schema.properties.messages);
    assert.ok((await client.assistants.getGraph(id)).nodes.length > 3);
    const left = await client.runs.wait(null, id, { input: human("hello") });
    assert.equal(left.answer, "Hello from the star.");
    for (const one of [id, other.assistant_id]) await client.assistants.delete(one);
    await refused(404, client.assistants.get(id));
  },

  async "items are put, read, searched, listed and deleted"() {
    const root = `js${crypto.randomUUID()}`;
    await client.store.putItem([root, "a"], "k", { kind: "green", cups: 2 });
    await client.store.putItem([root, "b"], "k", { kind: "black" }, { ttl: 60 });
    const item = await client.store.getItem([root, "a"], "k");
    assert.deepEqual([item.value, item.namespace], [{ kind: "green", cups: 2 }, [root, "a"]]);
    assert.ok(!Number.isNaN(Date.parse(item.createdAt)) && !Number.isNaN(Date.parse(item.updatedAt)));
    assert.equal(await client.store.getItem([root, "c"], "k"), null);
    const found = async (options) => (await client.store.searchItems([root], options)).items.map((one) => one.namespace[1]);
    assert.deepEqual(await found(), ["b", "a"]);
    assert.deepEqual(await found({ filter: { kind: "green" } }), ["a"]);
    assert.deepEqual(await found({ query: "BLACK" }), ["b"]);
    assert.deepEqual(await found({ limit: 1, offset: 1 }), ["a"]);
    const names = async (options) => (await client.store.listNamespaces({ prefix: [root], ...options })).namespaces;
    assert.deepEqual(await names(), [[root, "a"], [root, "b"]]);
    assert.deepEqual(await names({ suffix: ["b"] }), [[root, "b"]]);
    assert.deepEqual(await names({ maxDepth: 1 }), [[root]]);
    await client.store.deleteItem([root, "a"], "k");
    assert.deepEqual(await found(), ["b"]);
  },

  async "crons are made, found, counted, changed and deleted"() {
    const { thread_id } = await client.threads.create();
    const more = { schedule: "0 0 1 1 *", input: human("hello"), metadata: { by: "js" } };
    const first = await client.crons.createForThread(thread_id, "swarm", { ...more, timezone: "Europe/Berlin" });
    const second = await client.crons.create("swarm", { ...more, enabled: false, onRunCompleted: "keep" });
    assert.deepEqual([first.thread_id, first.timezone, first.enabled], [thread_id, "Europe/Berlin", true]);
    assert.deepEqual([second.thread_id, second.next_run_date, second.on_run_completed], [null, null, "keep"]);
    const ids = async (query) => (await client.crons.search(query)).map((one) => one.cron_id);
    const both = [first.cron_id, second.cron_id];
    assert.deepEqual(await ids({ threadId: thread_id }), both.slice(0, 1));
    assert.deepEqual(await ids({ metadata: { by: "js" }, sortBy: "created_at", sortOrder: "asc" }), both);
    assert.deepEqual(await ids({ metadata: { by: "js" }, enabled: false }), both.slice(1));
    assert.deepEqual(Object.keys((await client.crons.search({ threadId: thread_id, select: ["schedule"] }))[0]), ["schedule"]);
    assert.equal(await client.crons.count({ metadata: { by: "js" } }), 2);
    const changed = await client.crons.update(second.cron_id, { schedule: "30 7 * * MON-FRI", enabled: true });
    assert.ok(changed.enabled && changed.next_run_date.includes("T07:30:00"), JSON.stringify(changed));
    await refused(422, client.crons.create("swarm", { ...more, schedule: "now and then" }));
    for (const id of both) await client.crons.delete(id);
    await refused(404, client.crons.delete(both[0]));
    assert.equal(await client.crons.count({ metadata: { by: "js" } }), 0);
  },

  async "a batch begins all of its runs, and each says once that it has ended"() {
    const called = await receiver();
    const one = { assistantId: "swarm", webhook: called.url };
    const runs = await client.runs.createBatch([{ ...one, input: human("hello") }, { ...one, input: human("clarify") }]);
    assert.equal(new Set(runs.map((each) => each.thread_id)).size, 2);
    const heard = new Map();
    for (const _ of runs) {
      const { body, headers } = await called.next();
      heard.set(body.run_id, body);
      assert.ok(headers["x-perihelion-delivery"]);
    }
    assert.equal(heard.get(runs[0].run_id).values.answer, "Hello from the star.");
    assert.equal(heard.get(runs[1].run_id).values.__interrupt__[0].value.question, "Which year?");
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "swarm", { input: human("hello"), webhook: called.url });
    const last = (await called.next()).body;
    assert.deepEqual([last.thread_id, last.status, last.values.answer], [thread_id, "success", "Hello from the star."]);
    assert.ok(called.isEmpty());
    await refused(422, client.runs.createBatch([{ ...one, input: human("hello") }, { assistantId: "nobody", input: {} }]));
    called.close();
  },

  async "a thread is followed over its runs, pruned and deleted"() {
    const { thread_id } = await client.threads.create();
    for (const text of ["hello", "hello again"]) await client.runs.wait(thread_id, "swarm", { input: human(text) });
    const upTo = async (options, isLast) => {
      const heard = [];
      for await (const part of client.threads.joinStream(thread_id, options)) {
        heard.push(part);
        if (isLast(heard)) return heard;
      }
    };
    const ends = (heard) => heard.filter((part) => part.data.status === "run_done").length;
    const whole = await upTo({ lastEventId: "-1" }, (heard) => ends(heard) === 2);
    const values = whole.filter((part) => part.event === "values");
    assert.equal(values.at(-1).data.messages.length, 4);
    const rest = await upTo({ lastEventId: whole[1].id }, (heard) => heard.at(-1).id === whole.at(-1).id);
    assert.deepEqual(rest.map((part) => part.id), whole.slice(2).map((part) => part.id));
    const brief = await upTo({ lastEventId: "-1", streamMode: "lifecycle" }, (heard) => ends(heard) === 2);
    assert.deepEqual(brief.map((part) => part.event), Array(4).fill("metadata"));
    assert.deepEqual(await client.threads.prune([thread_id], { strategy: "keep_latest" }), { pruned_count: 1 });
    assert.equal((await client.threads.getHistory(thread_id, { limit: 100 })).length, 1);
    assert.equal((await client.threads.getState(thread_id)).values.messages.length, 4);
    assert.deepEqual(await client.threads.prune([thread_id, crypto.randomUUID()]), { pruned_count: 1 });
    await refused(404, client.threads.get(thread_id));
  },

  async "many runs are cancelled at once"() {
    const { thread_id } = await client.threads.create();
    const begun = [];
    for (const _ of [1, 2]) begun.push((await client.runs.create(thread_id, "swarm", { input: human("slow") })).run_id);
    await client.runs.cancelMany({ threadId: thread_id, runIds: begun });
    for (const id of begun) {
      await collect(client.runs.joinStream(thread_id, id));
      assert.equal((await client.runs.get(thread_id, id)).status, "interrupted");
    }
    assert.equal((await client.runs.list(thread_id, { status: "interrupted" })).length, 2);
  },
});
