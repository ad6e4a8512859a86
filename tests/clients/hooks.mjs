// Drives a server by React's hooks from npm, unchanged: useStream of the SDK, as agent-chat-ui has it, and of @langchain/react.
// PERIHELION_URL names the server.
import assert from "node:assert/strict";
import { useStream as useRunStream } from "@langchain/langgraph-sdk/react";
import { useStream as useThreadStream } from "@langchain/react";
import { ANSWER, APPROVE, client, human, run, until, url } from "./cases.mjs";
import { act, last, rendered } from "./rendered.mjs";

// Waits until the server has stopped the one run of a thread.
const stopped = (threadId) => until(async () => {
  const [{ status }] = await client.runs.list(threadId);
  assert.ok(["pending", "running", "interrupted"].includes(status), status);
  return status === "interrupted";
}, 30);
const SDK = { apiUrl: url, assistantId: "swarm", messagesKey: "messages" };

await run({
  async "useStream of the sdk submits, shows an interrupt and resumes it"() {
    const hook = await rendered(useRunStream, SDK);
    await act(async () => hook.now().submit({ messages: [{ type: "human", content: "approve this" }] }));
    const asked = await hook.until((stream) => !stream.isLoading && stream.interrupt);
    assert.equal(asked.interrupt.value.action_requests[0].name, "notes.append_note");
    await act(async () => hook.now().submit(undefined, { command: { resume: APPROVE } }));
    await hook.until((stream) => !stream.isLoading && last(stream) === ANSWER);
    await hook.end();
  },

  async "useStream of @langchain/react follows a thread by its protocol"() {
    const hook = await rendered(useThreadStream, { apiUrl: url, assistantId: "swarm" });
    await act(async () => { hook.now().submit({ messages: [{ type: "human", content: "hello" }] }); });
    const done = await hook.until((stream) => !stream.isLoading && last(stream) === ANSWER);
    assert.equal(done.error ?? null, null);
    await hook.end();
  },

  async "useStream of the sdk answers several questions one by one"() {
    const hook = await rendered(useRunStream, SDK);
    await act(async () => hook.now().submit(human("twice")));
    const { interrupts } = await hook.until((stream) => !stream.isLoading && stream.interrupts?.length === 2);
    const [first, second] = interrupts.map((asked) => asked.id);
    await act(async () => hook.now().submit(undefined, { command: { resume: { [first]: APPROVE } } }));
    await hook.until((stream) => !stream.isLoading && stream.interrupts.length === 1 && stream.interrupts[0].id === second);
    await act(async () => hook.now().submit(undefined, { command: { resume: { [second]: APPROVE } } }));
    await hook.until((stream) => !stream.isLoading && last(stream) === ANSWER);
    await hook.end();
  },

  async "useStream of the sdk branches at a message, and goes from branch to branch"() {
    // By default the hook fetches ten states, and both questions have more.
    const hook = await rendered(useRunStream, { ...SDK, fetchStateHistory: { limit: 100 } });
    await act(async () => hook.now().submit(human("hello")));
    await hook.until((stream) => !stream.isLoading && stream.history.length > 2 && last(stream) === ANSWER);
    const asked = hook.now().messages[0];
    const before = hook.now().getMessagesMetadata(asked).firstSeenState.parent_checkpoint;
    // An answer that is asked for again is a branch of the answer; a question that is put otherwise one of the question.
    const [, answer] = hook.now().messages;
    await act(async () => hook.now().submit(undefined, { checkpoint: hook.now().getMessagesMetadata(answer).firstSeenState.parent_checkpoint }));
    await hook.until((stream) => !stream.isLoading && stream.getMessagesMetadata(stream.messages[1])?.branchOptions?.length === 2);
    await act(async () => hook.now().submit(human("hello again"), { checkpoint: before }));
    const now = await hook.until((stream) => !stream.isLoading && stream.messages[0]?.content === "hello again"
      && stream.getMessagesMetadata(stream.messages[0])?.branchOptions?.length === 2);
    const { branch, branchOptions } = now.getMessagesMetadata(now.messages[0]);
    await act(async () => now.setBranch(branchOptions.find((one) => one !== branch)));
    await hook.until((stream) => stream.messages[0]?.content === "hello");
    await hook.end();
  },

  async "useStream of the sdk stops a run"() {
    let threadId;
    const hook = await rendered(useRunStream, { ...SDK, onThreadId: (id) => { threadId = id; } });
    await act(async () => { hook.now().submit(human("slow"), { onDisconnect: "cancel" }); });
    await hook.until((stream) => stream.isLoading && String(last(stream)).startsWith("Once"));
    await act(async () => hook.now().stop());
    await hook.until((stream) => !stream.isLoading);
    await stopped(threadId);
    await hook.end();
  },

  async "useStream of the sdk follows a run again that was begun before the page was loaded"() {
    const kept = new Map();
    const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
    let threadId;
    const options = { ...SDK, reconnectOnMount: () => storage, onThreadId: (id) => { threadId = id; } };
    const first = await rendered(useRunStream, options);
    await act(async () => { first.now().submit(human("slow"), { onDisconnect: "continue", streamResumable: true }); });
    await first.until((stream) => String(last(stream)).startsWith("Once"));
    // A page that is loaded again has what was kept, and has not said goodbye.
    const [key, run] = [...kept][0];
    await first.end();
    kept.set(key, run);
    const again = await rendered(useRunStream, { ...options, threadId });
    await again.until((stream) => !stream.isLoading && last(stream)?.endsWith("to end."));
    await again.end();
  },

  async "useStream of the sdk shows what was said in a thread that is opened"() {
    const { thread_id } = await client.threads.create();
    await client.runs.wait(thread_id, "swarm", { input: human("clarify") });
    const hook = await rendered(useRunStream, { ...SDK, threadId: thread_id });
    await hook.until((stream) => stream.interrupt?.value.question === "Which year?");
    await act(async () => hook.now().submit(human("1945")));
    await hook.until((stream) => !stream.isLoading && last(stream) === ANSWER);
    await hook.end();
  },

  async "useStream of @langchain/react answers several questions at once, and one"() {
    const hook = await rendered(useThreadStream, { apiUrl: url, assistantId: "swarm" });
    await act(async () => { hook.now().submit(human("twice")); });
    const { interrupts } = await hook.until((stream) => stream.interrupts.length === 2);
    await act(async () => hook.now().respondAll(Object.fromEntries(interrupts.map((asked) => [asked.id, APPROVE]))));
    await hook.until((stream) => !stream.isLoading && last(stream) === ANSWER);
    await hook.end();
    const other = await rendered(useThreadStream, { apiUrl: url, assistantId: "swarm" });
    await act(async () => { other.now().submit(human("approve this")); });
    await other.until((stream) => stream.interrupt);
    await act(async () => other.now().respond(APPROVE));
    await other.until((stream) => !stream.isLoading && last(stream) === ANSWER);
    await other.end();
  },

  async "useStream of @langchain/react stops a run, and shows a thread that is opened"() {
    const hook = await rendered(useThreadStream, { apiUrl: url, assistantId: "swarm" });
    await act(async () => { hook.now().submit(human("slow")); });
    await hook.until((stream) => String(last(stream)).startsWith("Once"));
    await act(async () => hook.now().stop());
    await hook.until((stream) => !stream.isLoading);
    const { threadId } = hook.now();
    await stopped(threadId);
    await hook.end();
    await client.runs.wait(threadId, "swarm", { input: human("hello") });
    const again = await rendered(useThreadStream, { apiUrl: url, assistantId: "swarm", threadId });
    await again.until((stream) => last(stream)?.endsWith("to end."));
    await again.end();
  },
});
