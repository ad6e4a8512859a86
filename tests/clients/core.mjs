// What the client from PyPI is held to, by the one from npm: modes, questions, states, runs beside each other, ends.
import assert from "node:assert/strict";
import { ANSWER, APPROVE, client, collect, human, run, until } from "./cases.mjs";

const REJECT = { decisions: [{ type: "reject" }] };

const thread = async () => (await client.threads.create()).thread_id;
const wait = (id, text, more = {}) => client.runs.wait(id, "swarm", { input: text === null ? null : human(text), ...more });
const resume = (id, answer) => client.runs.wait(id, "swarm", { command: { resume: answer } });
const statuses = async (id) => Object.fromEntries((await client.runs.list(id)).map((one) => [one.run_id, one.status]));

const refused = async (promise, status) => {
  await assert.rejects(promise, (error) => {
    assert.equal(error.status, status, error.message);
    return true;
  });
};

await run({
  async "every stream mode has its events"() {
    for (const mode of ["values", "updates", "messages", "custom", "tasks", "checkpoints", "debug", "events", "messages-tuple"]) {
      const parts = await collect(client.runs.stream(await thread(), "swarm", { input: human("hello"), streamMode: mode }));
      assert.ok(parts[0].event === "metadata" && parts[0].data.run_id, mode);
      const wanted = { "messages-tuple": "messages", messages: "messages/partial" }[mode] ?? mode;
      const names = new Set(parts.slice(1).map((part) => part.event));
      assert.ok(names.has(wanted), `${mode}: ${[...names]}`);
    }
    const parts = await collect(client.runs.stream(null, "swarm", { input: human("hello"), streamMode: "values" }));
    assert.deepEqual(parts.at(-1).data.messages.map((one) => one.type), ["human", "ai"]);
  },

  async "events of what works below a node carry its namespace"() {
    const id = await thread();
    await wait(id, "approve this");
    const parts = await collect(client.runs.stream(id, "swarm", {
      command: { resume: APPROVE }, streamMode: ["updates", "values"], streamSubgraphs: true,
    }));
    for (const part of parts.slice(1)) assert.match(part.event, /^(updates|values)(\|.+)?$/);
    assert.equal(parts.filter((part) => part.event === "values").at(-1).data.answer, ANSWER);
  },

  async "parallel questions are answered one by one, and all at once"() {
    const one = await thread();
    const [first, second] = (await wait(one, "twice")).__interrupt__.map((asked) => asked.id);
    const left = await resume(one, { [first]: APPROVE });
    assert.deepEqual(left.__interrupt__.map((asked) => asked.id), [second]);
    assert.equal((await client.threads.get(one)).status, "interrupted");
    const done = await resume(one, { [second]: REJECT });
    assert.equal(done.__interrupt__, undefined);
    const both = await thread();
    const asked = (await wait(both, "twice")).__interrupt__;
    const answers = Object.fromEntries(asked.map(({ id }) => [id, APPROVE]));
    assert.equal((await resume(both, answers)).answer, ANSWER);
  },

  async "a state is read, edited, forked and run on"() {
    const id = await thread();
    await wait(id, "hello");
    const history = await client.threads.getHistory(id, { limit: 100 });
    assert.deepEqual(history[0].next, []);
    const planned = history.find((one) => one.next[0] === "qa");
    assert.deepEqual(await client.threads.getState(id, planned.checkpoint).then((one) => one.values), planned.values);
    const older = await client.threads.getHistory(id, { limit: 2, before: { configurable: history[1].checkpoint } });
    assert.deepEqual(older, history.slice(2, 4));
    const edited = await client.threads.updateState(id, { values: { plan: ["mine"] }, checkpoint: planned.checkpoint });
    const state = await client.threads.getState(id);
    assert.equal(state.checkpoint.checkpoint_id, edited.configurable?.checkpoint_id ?? edited.checkpoint.checkpoint_id);
    assert.deepEqual([state.values.plan, state.values.messages.length], [["mine"], 1]);
    const again = await wait(id, null, { checkpointId: planned.checkpoint.checkpoint_id });
    assert.equal(again.messages.length, 2);
    await client.threads.update(id, { metadata: { mood: "calm" } });
    assert.equal((await client.threads.get(id)).metadata.mood, "calm");
    const copy = await client.threads.copy(id);
    assert.deepEqual((await client.threads.getState(copy.thread_id)).values.messages, again.messages);
  },

  async "a run pauses before and after nodes that are named"() {
    for (const more of [{ interruptBefore: ["qa"] }, { interruptAfter: ["supervisor"] }]) {
      const id = await thread();
      await wait(id, "hello", more);
      assert.deepEqual((await client.threads.getState(id)).next, ["qa"], JSON.stringify(more));
      assert.equal((await wait(id, null)).answer, ANSWER);
    }
  },

  async "runs beside each other wait, are refused, go first or take the place of another"() {
    const id = await thread();
    const first = await client.runs.create(id, "swarm", { input: human("slow") });
    const begin = (text, multitaskStrategy) => client.runs.create(id, "swarm", { input: human(text), multitaskStrategy });
    await refused(begin("hello", "reject"), 409);
    assert.equal((await begin("hello", "enqueue")).status, "pending");
    const interrupting = await begin("hello", "interrupt");
    await client.runs.join(id, interrupting.run_id);
    const now = await statuses(id);
    assert.deepEqual([now[first.run_id], now[interrupting.run_id]], ["interrupted", "success"]);
    const slow = await begin("slow");
    const back = await begin("hello", "rollback");
    await client.runs.join(id, back.run_id);
    assert.equal((await statuses(id))[slow.run_id], undefined);
  },

  async "a client that goes away stops its run where it said so"() {
    for (const [onDisconnect, wanted] of [["cancel", "interrupted"], ["continue", "success"]]) {
      const id = await thread();
      const away = new AbortController();
      const stream = client.runs.stream(id, "swarm", {
        input: human("slow"), streamMode: "messages-tuple", onDisconnect, signal: away.signal,
      });
      // Whether an iteration that was aborted ends or throws is the client's own.
      await collect((async function* () {
        for await (const part of stream) {
          if (part.event === "messages") away.abort();
          yield part;
        }
      })()).catch((error) => assert.match(error.name, /Abort/));
      await until(async () => Object.values(await statuses(id))[0] === wanted);
    }
  },

  async "a run is cancelled, waited for and deleted"() {
    const id = await thread();
    const slow = await client.runs.create(id, "swarm", { input: human("slow"), streamMode: "messages-tuple" });
    for await (const part of client.runs.joinStream(id, slow.run_id)) if (part.event === "messages") break;
    await client.runs.cancel(id, slow.run_id, true);
    assert.equal((await client.runs.get(id, slow.run_id)).status, "interrupted");
    await refused(client.runs.cancel(id, slow.run_id), 404);
    await client.runs.delete(id, slow.run_id);
    await refused(client.runs.get(id, slow.run_id), 404);
    const slower = await client.runs.create(id, "swarm", { input: human("slow") });
    await client.runs.cancel(id, slower.run_id, true, "rollback");
    assert.equal((await statuses(id))[slower.run_id], undefined);
  },

  async "threads are found by what they are, counted and deleted"() {
    const kept = await client.threads.create({ metadata: { team: "core.mjs" } });
    await client.threads.create({ threadId: kept.thread_id, ifExists: "do_nothing" });
    await refused(client.threads.create({ threadId: kept.thread_id }), 409);
    await wait(kept.thread_id, "clarify");
    const found = await client.threads.search({ metadata: { team: "core.mjs" }, status: "interrupted" });
    assert.deepEqual(found.map((one) => one.thread_id), [kept.thread_id]);
    assert.equal(Object.values(found[0].interrupts)[0][0].value.question, "Which year?");
    assert.equal((await wait(kept.thread_id, "1945")).answer, ANSWER);
    await client.threads.delete(kept.thread_id);
    await refused(client.threads.get(kept.thread_id), 404);
  },

  async "what cannot be is refused by its code"() {
    const id = await thread();
    await refused(wait(id, "hello", { multitaskStrategy: "x" }), 422);
    await refused(client.runs.wait(id, "nobody", { input: human("hello") }), 422);
    await refused(wait("11111111-1111-4111-8111-111111111111", "hello"), 404);
    await refused(client.threads.get("no-uuid"), 422);
  },
});
