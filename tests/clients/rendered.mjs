// Renders React's hooks outside of a browser.
import assert from "node:assert/strict";
import React, { act } from "react";
import { create } from "react-test-renderer";

export { act };

globalThis.IS_REACT_ACT_ENVIRONMENT = true;
// Without one the SDK takes itself to be on a server and keeps nothing.
globalThis.window = globalThis;

// Renders a hook, and waits until what it returns is as it is to be.
export const rendered = async (hook, options) => {
  let now;
  // What a page reads while it is drawn is what the hook asks the server for.
  const Shown = () => { now = hook(options); void now.messages; return null; };
  let root;
  await act(async () => { root = create(React.createElement(Shown)); });
  const until = async (isSo) => {
    const end = Date.now() + 60_000;
    while (!isSo(now)) {
      assert.ok(Date.now() < end, `it never became so: ${JSON.stringify(now.values)} ${now.error}`);
      await act(async () => { await new Promise((done) => setTimeout(done, 20)); });
    }
    return now;
  };
  return { now: () => now, until, end: () => act(async () => root.unmount()) };
};

// Returns the text of the newest message.
export const last = (stream) => {
  const content = stream.messages.at(-1)?.content;
  return Array.isArray(content) ? content.map((part) => part.text ?? "").join("") : content;
};
