// A graph of the server as a graph of @langchain/langgraph: by itself, and as a node of a graph of another program.
import assert from "node:assert/strict";
import { Annotation, Command, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { ANSWER, APPROVE, client, collect, human, run, url } from "./cases.mjs";

const graph = new RemoteGraph({ graphId: "swarm", url });
const fresh = async () => ({ configurable: { thread_id: (await client.threads.create()).thread_id } });

await run({
  async "it is invoked, streamed and read"() {
    const config = await fresh();
    assert.equal((await graph.invoke(human("hello"), config)).answer, ANSWER);
    assert.equal((await graph.getState(config)).values.messages.length, 2);
    const parts = await collect(await graph.stream(human("again"), { ...config, streamMode: "updates" }));
    assert.ok(parts.some((part) => "qa" in part));
    const pairs = await collect(await graph.stream(human("again"), { ...config, streamMode: ["values", "messages"] }));
    assert.equal(pairs.filter(([mode]) => mode === "values").at(-1)[1].answer, ANSWER);
    const texts = pairs.filter(([mode]) => mode === "messages").map(([, [chunk]]) => chunk.content);
    assert.equal(texts.join(""), ANSWER);
  },

  async "it asks, and is resumed by a command"() {
    const config = await fresh();
    // So that a graph around it is interrupted as well.
    await assert.rejects(graph.invoke(human("approve this"), config), (error) => {
      assert.equal(error.interrupts[0].value.action_requests[0].name, "notes.append_note");
      return true;
    });
    const asked = await graph.getState(config);
    assert.equal(asked.tasks.flatMap((task) => task.interrupts).length, 1);
    const done = await graph.invoke(new Command({ resume: APPROVE }), config);
    assert.equal(done.answer, ANSWER);
    assert.deepEqual((await graph.getState(config)).next, []);
  },

  async "its history is walked, and a state of it edited and run on"() {
    const config = await fresh();
    await graph.invoke(human("hello"), config);
    const history = await collect(graph.getStateHistory(config));
    assert.deepEqual([history[0].next, history.at(-1).metadata.source], [[], "input"]);
    const planned = history.find((one) => one.next[0] === "qa");
    const edited = await graph.updateState(planned.config, { plan: ["mine"] });
    assert.deepEqual((await graph.getState(edited)).values.plan, ["mine"]);
    assert.equal((await graph.invoke(null, edited)).answer, ANSWER);
    const older = await collect(graph.getStateHistory(config, { limit: 1, before: planned.config }));
    assert.equal(older.length, 1);
    assert.ok(older[0].createdAt <= planned.createdAt);
  },

  async "it is drawn with its nodes"() {
    const drawn = await graph.getGraphAsync();
    for (const node of ["preprocess", "supervisor", "qa"]) assert.ok(node in drawn.nodes, Object.keys(drawn.nodes).join());
    assert.ok(drawn.edges.some((edge) => edge.source === "preprocess" && edge.target === "supervisor"));
  },

  async "it pauses where it is told to"() {
    const config = await fresh();
    await assert.rejects(graph.invoke(human("hello"), { ...config, interruptBefore: ["qa"] }), { name: "GraphInterrupt" });
    assert.deepEqual((await graph.getState(config)).next, ["qa"]);
    assert.equal((await graph.invoke(null, config)).answer, ANSWER);
  },

  async "it is a node of a graph of another program"() {
    const State = Annotation.Root({ ...MessagesAnnotation.spec, answer: Annotation() });
    const outer = new StateGraph(State)
      .addNode("star", graph)
      .addNode("after", (state) => ({ answer: `${state.answer} Heard.` }))
      .addEdge("__start__", "star").addEdge("star", "after").addEdge("after", "__end__").compile();
    const left = await outer.invoke({ messages: [{ role: "user", content: "hello" }] });
    assert.equal(left.answer, "Hello from the star. Heard.");
  },

  async "what it says of a failure reaches the caller"() {
    const config = await fresh();
    await assert.rejects(new RemoteGraph({ graphId: "nobody", url }).invoke(human("hello"), config), /nobody/);
  },
});
