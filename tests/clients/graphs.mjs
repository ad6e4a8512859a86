// Drives the examples, which serve graphs of their own, with the clients from npm, unchanged: the SDK, RemoteGraph and
// React's hooks. PERIHELION_URL names the server, EXAMPLE what it serves.
import assert from "node:assert/strict";
import { useStream as useRunStream } from "@langchain/langgraph-sdk/react";
import { Annotation, Command, StateGraph } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { useStream as useThreadStream } from "@langchain/react";
import { act, last, rendered } from "./rendered.mjs";
import { APPROVE, client, collect, human, run, url } from "./cases.mjs";

const NAME = process.env.EXAMPLE;
const DEAR = { item: "a globe", cents: 25_000 };
const QUESTION = { topic: "the earth", sources: ["Bruno", "Kepler"] };
const WARM = "It is warm and dry in Padua, at 21 degrees.";
const INPUT = { order: { item: "a globe", cents: 5 }, research: QUESTION, chat: human("How is the weather in Padua?") };
const MODES = ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug", "events"];

const graph = new RemoteGraph({ graphId: NAME, url });
const fresh = async () => ({ configurable: { thread_id: (await client.threads.create()).thread_id } });

const OF_EACH = {
  async "the sdk streams every mode, and reads the assistant"() {
    const { thread_id } = await client.threads.create();
    const parts = await collect(client.runs.stream(thread_id, NAME, { input: INPUT[NAME], streamMode: MODES, streamSubgraphs: true }));
    const names = new Set(parts.map((part) => part.event));
    for (const mode of ["metadata", "values", "updates", "tasks", "checkpoints", "debug", "events"]) assert.ok(names.has(mode), `${mode}: ${[...names]}`);
    assert.ok(!names.has("error"));
    assert.deepEqual(Object.keys((await client.assistants.getSchemas(NAME)).input_schema.properties), Object.keys(INPUT[NAME]));
    const mine = await client.assistants.create({ graphId: NAME, name: "mine" });
    assert.equal((await client.assistants.update(mine.assistant_id, { name: "yours" })).version, 2);
    assert.equal((await client.assistants.getVersions(mine.assistant_id)).length, 2);
    await client.assistants.delete(mine.assistant_id);
  },

  async "a remote graph is drawn"() {
    const drawn = await graph.getGraphAsync();
    for (const node of { order: ["check", "approve", "pay"], research: ["plan", "source", "choose", "report"], chat: ["agent"] }[NAME]) assert.ok(node in drawn.nodes, Object.keys(drawn.nodes).join());
  },
};

const TESTS = {
  order: {
    async "a remote graph is invoked, asked, edited and walked"() {
      const config = await fresh();
      await assert.rejects(graph.invoke(DEAR, config), (error) => {
        assert.equal(error.interrupts[0].value.action_requests[0].name, "payments.pay");
        return true;
      });
      await graph.updateState(config, { cents: 12_000, log: ["corrected"] });
      assert.deepEqual((await graph.getState(config)).values.log, ["a globe for 25000 cents", "corrected"]);
      await assert.rejects(graph.invoke(null, config), { name: "GraphInterrupt" });
      const done = await graph.invoke(new Command({ resume: APPROVE }), config);
      assert.equal(done.cents, 12_000);
      assert.ok(done.receipt);
      const history = await collect(graph.getStateHistory(config));
      assert.deepEqual([history[0].next, history.at(-1).metadata.source], [[], "input"]);
    },

    async "a remote graph is a node of a graph of another program"() {
      const State = Annotation.Root({ item: Annotation(), cents: Annotation(), receipt: Annotation(), log: Annotation() });
      const outer = new StateGraph(State).addNode("order", graph).addEdge("__start__", "order").addEdge("order", "__end__").compile();
      assert.ok((await outer.invoke(INPUT.order)).receipt);
    },

    async "useStream of the sdk shows the state and resumes an approval"() {
      const hook = await rendered(useRunStream, { apiUrl: url, assistantId: NAME });
      await act(async () => hook.now().submit(DEAR));
      const asked = await hook.until((stream) => !stream.isLoading && stream.interrupt);
      assert.equal(asked.interrupt.value.action_requests[0].name, "payments.pay");
      await act(async () => hook.now().submit(undefined, { command: { resume: APPROVE } }));
      await hook.until((stream) => !stream.isLoading && stream.values.receipt);
      await hook.end();
    },

    async "useStream of @langchain/react shows the state and answers an approval"() {
      const hook = await rendered(useThreadStream, { apiUrl: url, assistantId: NAME });
      await act(async () => { hook.now().submit(DEAR); });
      await hook.until((stream) => stream.interrupt);
      await act(async () => hook.now().respond(APPROVE));
      await hook.until((stream) => !stream.isLoading && stream.values?.receipt);
      await hook.end();
    },
  },

  research: {
    async "a remote graph streams its nodes and takes an answer of any form"() {
      const config = await fresh();
      const parts = [];
      // What waits for a person ends the stream of a graph that another one may be around.
      await assert.rejects(async () => {
        for await (const part of await graph.stream(QUESTION, { ...config, streamMode: "updates" })) parts.push(part);
      }, (error) => error.interrupts[0].value.ask === "How long?");
      assert.ok(parts.some((part) => "source" in part), JSON.stringify(parts));
      const texts = await collect(await graph.stream(new Command({ resume: "short" }), { ...config, streamMode: ["values", "messages"] }));
      assert.equal(texts.filter(([mode]) => mode === "values").at(-1)[1].report, "The earth moves.");
      assert.equal(texts.filter(([mode]) => mode === "messages").map(([, [chunk]]) => chunk.content).join(""), "The earth moves.");
    },

    async "useStream of both libraries answers what it asks"() {
      const hook = await rendered(useRunStream, { apiUrl: url, assistantId: NAME });
      await act(async () => hook.now().submit(QUESTION));
      const { interrupt } = await hook.until((stream) => !stream.isLoading && stream.interrupt);
      assert.equal(interrupt.value.ask, "How long?");
      await act(async () => hook.now().submit(undefined, { command: { resume: "short" } }));
      await hook.until((stream) => !stream.isLoading && stream.values.report === "The earth moves.");
      await hook.end();
      const other = await rendered(useThreadStream, { apiUrl: url, assistantId: NAME });
      await act(async () => { other.now().submit(QUESTION); });
      await other.until((stream) => stream.interrupt?.value.ask === "How long?");
      await act(async () => other.now().respond("long"));
      await other.until((stream) => !stream.isLoading && stream.values?.length === "long" && stream.values.report);
      await other.end();
    },
  },

  chat: {
    async "a remote graph answers, and its pieces add up"() {
      const config = await fresh();
      const parts = await collect(await graph.stream(INPUT.chat, { ...config, streamMode: ["values", "messages"] }));
      assert.equal(parts.filter(([mode]) => mode === "messages").map(([, [chunk]]) => chunk.content).join(""), WARM);
      assert.equal((await graph.getState(config)).values.messages.length, 2);
    },

    async "useStream of both libraries shows the answer, turn after turn"() {
      for (const [use, options] of [[useRunStream, { apiUrl: url, assistantId: NAME, messagesKey: "messages" }], [useThreadStream, { apiUrl: url, assistantId: NAME }]]) {
        const hook = await rendered(use, options);
        for (const turn of [1, 2]) {
          await act(async () => { hook.now().submit(INPUT.chat); });
          await hook.until((stream) => !stream.isLoading && stream.messages.length === 2 * turn && last(stream) === WARM);
        }
        await hook.end();
      }
    },
  },
};

await run({ ...OF_EACH, ...TESTS[NAME] });
