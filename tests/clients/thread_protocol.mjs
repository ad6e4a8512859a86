// A thread as one stream by `client.threads.stream` of @langchain/langgraph-sdk 1.15.0, over server-sent events and over a
// WebSocket, with connections that are cut.
import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { Client } from "@langchain/langgraph-sdk";
import WebSocket from "ws";
import { ANSWER, APPROVE, client, collect, human, run, until, url } from "./cases.mjs";

const TRANSPORTS = {
  sse: { transport: "sse" },
  websocket: { transport: "websocket", webSocketFactory: (place) => new WebSocket(place) },
};

// Opens a thread over each transport, for one test.
const over = async (test, given = client, more = {}) => {
  for (const [name, options] of Object.entries(TRANSPORTS)) {
    const thread = given.threads.stream({ assistantId: "swarm", ...options, ...more });
    try {
      await test(thread, name, { assistantId: "swarm", ...options, ...more });
    } catch (error) {
      error.message = `over ${name}: ${error.message}`;
      throw error;
    } finally {
      await thread.close();
    }
  }
};

// Waits until a run of a thread is completed, and returns the answer that it left.
const answered = async (thread) => {
  for await (const event of await thread.subscribe("lifecycle")) if (event.params.data.event === "completed") break;
  return (await client.threads.getState(thread.threadId)).values.answer;
};

// Stands between client and server, and cuts every connection when asked.
const cuttable = async () => {
  const sockets = new Set();
  const place = new URL(url);
  const server = createServer((near) => {
    const far = connect(Number(place.port), place.hostname);
    for (const [one, other] of [[near, far], [far, near]]) {
      sockets.add(one);
      one.on("error", () => {}).on("close", () => { sockets.delete(one); other.destroy(); });
      one.pipe(other);
    }
  });
  await new Promise((done) => { server.listen(0, "127.0.0.1", done); });
  return {
    client: new Client({ apiUrl: `http://127.0.0.1:${server.address().port}` }),
    cut: () => { for (const socket of sockets) socket.destroy(); },
    close: () => server.close(),
  };
};

await run({
  async "a thread is run and heard over both transports"() {
    await over(async (thread, name) => {
      // It listens before the run begins: what is over by then is not told again.
      const heard = collect(thread.messages).then((all) => Promise.all(all.map((message) => message.text)));
      const begun = await thread.run.start({ input: human("hello"), metadata: { by: name } });
      assert.deepEqual(await heard, [ANSWER]);
      const left = await thread.output;
      assert.equal(left.answer, ANSWER);
      assert.equal(left.messages.length, 2);
      const kept = await client.runs.get(thread.threadId, begun.run_id);
      assert.deepEqual([kept.status, kept.metadata.by], ["success", name]);
      const state = await thread.state.get({ namespace: [], keys: ["answer"] });
      assert.deepEqual(state.values, { answer: ANSWER });
      const { tree } = await thread.agent.getTree();
      assert.equal(tree.graph_name, "swarm");
    });
  },

  async "questions are heard and answered one by one over both transports"() {
    await over(async (thread) => {
      await thread.run.start({ input: human("twice") });
      await until(() => thread.interrupts.length === 2 && thread.interrupted);
      const [first, second] = [...thread.interrupts];
      assert.equal(first.payload.action_requests[0].name, "notes.append_note");
      const answer = (asked) => thread.input.respond({ namespace: asked.namespace, interrupt_id: asked.interruptId, response: APPROVE });
      await answer(first);
      // The one that is left is asked again by the run that took the answer.
      await until(() => thread.interrupts.length === 1 && thread.interrupted);
      assert.equal(thread.interrupts[0].interruptId, second.interruptId);
      await answer(second);
      assert.equal(await answered(thread), ANSWER);
      await assert.rejects(answer(second), /no open question has this ID/);
    });
  },

  async "several questions are answered by one command over both transports"() {
    await over(async (thread) => {
      await thread.submitRun({ input: human("twice") });
      await until(() => thread.interrupts.length === 2 && thread.interrupted);
      const responses = thread.interrupts.map((asked) => ({
        namespace: asked.namespace, interrupt_id: asked.interruptId, response: APPROVE,
      }));
      await thread.respondInput({ responses });
      assert.equal(await answered(thread), ANSWER);
    });
  },

  async "a step is returned to, and a run waits, is refused or goes first over both transports"() {
    await over(async (thread) => {
      await thread.run.start({ input: human("hello") });
      await thread.output;
      const { checkpoints } = await thread.state.listCheckpoints({ namespace: [], limit: 100 });
      const forked = await thread.submitRun({ input: human("hello again"), forkFrom: checkpoints.at(-1).id });
      const left = await client.runs.join(thread.threadId, forked.run_id);
      // The turn before is not on this branch, or it has no answer there.
      assert.equal(left.messages.filter((one) => one.type === "ai").length, 1, JSON.stringify(left.messages));
      const slow = await thread.submitRun({ input: human("slow") });
      await assert.rejects(thread.submitRun({ input: human("hello"), multitaskStrategy: "reject" }), /busy|already|running|reject/i);
      const next = await thread.submitRun({ input: human("hello"), multitaskStrategy: "interrupt" });
      await client.runs.join(thread.threadId, next.run_id);
      const status = async (begun) => (await client.runs.get(thread.threadId, begun.run_id)).status;
      assert.deepEqual([await status(slow), await status(next)], ["interrupted", "success"]);
      const again = await thread.state.fork({ checkpoint_id: checkpoints.at(-1).id, input: human("hello") });
      await client.runs.join(thread.threadId, again.run_id);
      assert.equal(await status(again), "success");
    });
  },

  async "a stream whose connections are cut continues without gap or double over both transports"() {
    const between = await cuttable();
    const more = { maxReconnectAttempts: 100, reconnectDelayMs: () => 20 };
    await over(async (thread, _, options) => {
      const heard = [];
      thread.onEvent((event) => heard.push(event));
      await thread.submitRun({ input: human("slow") });
      const stream = await thread.subscribe(["messages", "values", "lifecycle"]);
      let cuts = 0;
      for await (const event of stream) {
        const pieces = heard.filter((one) => one.method === "messages").length;
        if (cuts < 3 && pieces >= 3 * (cuts + 1)) {
          cuts += 1;
          between.cut();
        }
        if (event.method === "lifecycle" && event.params.data.event === "completed") break;
      }
      assert.equal(cuts, 3);
      const again = client.threads.stream(thread.threadId, options);
      const whole = [];
      for await (const event of await again.subscribe(["messages", "values", "lifecycle"])) {
        whole.push(event);
        if (event.method === "lifecycle" && event.params.data.event === "completed") break;
      }
      await again.close();
      const ids = (events) => events.map((event) => event.event_id);
      assert.equal(new Set(ids(whole)).size, whole.length);
      assert.deepEqual(ids(heard).sort(), ids(whole).sort());
    }, between.client, more);
    between.close();
  },

  async "what is wrong is said in words over both transports"() {
    await over(async (thread) => {
      await assert.rejects(thread.subscribe(["gossip"]), /gossip|422/);
    });
    const nobody = client.threads.stream({ assistantId: "nobody", ...TRANSPORTS.sse });
    await assert.rejects(nobody.submitRun({ input: human("hello") }), /nobody/);
    await nobody.close();
  },
});
