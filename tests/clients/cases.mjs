// What the tests of the clients from npm share, and how they are run.
import assert from "node:assert/strict";
import { Client } from "@langchain/langgraph-sdk";

export const url = process.env.PERIHELION_URL;
export const client = new Client({ apiUrl: url });
export const human = (content) => ({ messages: [{ type: "human", content }] });

export const APPROVE = { decisions: [{ type: "approve" }] };
export const ANSWER = "Hello from the star.";

// Asks again and again until it is so, for so many seconds at most.
export const until = async (isSo, seconds = 60) => {
  const end = Date.now() + seconds * 1_000;
  while (!(await isSo())) {
    assert.ok(Date.now() < end, "it never became so");
    await new Promise((done) => { setTimeout(done, 20); });
  }
};

export const collect = async (stream) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
};

// Runs tests by their names, and ends the process.
export const run = async (tests) => {
  const words = process.argv.slice(2);
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    try {
      await test();
      console.log(`ok    ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name}: ${error.stack}`);
    }
  }
  process.exit(failed ? 1 : 0);
};
