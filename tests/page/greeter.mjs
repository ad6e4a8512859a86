/** An MCP server over stdio whose one tool says of itself what a file holds, so that a test can change its mind. */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [words] = process.argv.slice(2);

function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "greeter", version: "1" } };
    case "tools/list":
      return { tools: [{ name: "greet", description: readFileSync(words, "utf8").trim(), inputSchema: { type: "object", properties: { name: { type: "string" } } } }] };
    case "tools/call":
      return { content: [{ type: "text", text: `Hello, ${params.arguments?.name ?? "you"}` }] };
    default:
      return {};
  }
}

for await (const line of createInterface(process.stdin)) {
  const request = JSON.parse(line);
  if (request.id === undefined) continue;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: request.id, result: answer(request) })}\n`);
}
