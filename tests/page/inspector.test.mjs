/** S3.13, S4.10: steps, branches and traces; a run beside what it would do now, and beside another one. */

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, ask, askMore, go, inspect, openActivity } from "./browser.mjs";
import { ROOT } from "./server.mjs";
import { setStage } from "./stage.mjs";

const PRICES = `[models.prices.scripted]
input_per_mtok = 2000.0
output_per_mtok = 8000.0
`;

let model, server, tab;
setStage({ settings: PRICES }, (stage) => ({ model, server, tab } = stage));

test("steps are shown with their state and what changed between any two", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, `inspect/${thread}`);
  const rows = tab.locator(".step-row");
  await rows.first().getByText("qa → end").waitFor();
  const changes = tab.locator(".changes");
  await changes.locator("dt").getByText("Answer", { exact: true }).waitFor();
  await tab.getByLabel("Compare with").selectOption({ index: await rows.count() });
  await tab.getByText("What changed since step 1").waitFor();
  await changes.locator("dt").getByText("Plan 1", { exact: true }).waitFor();
  await tab.getByLabel("Compare with").selectOption("");
  await rows.last().click();
  await tab.getByRole("button", { name: "Use as baseline" }).click();
  await rows.first().click();
  await tab.getByText("What changed since step 1").waitFor();
  await rows.last().click();
  await tab.locator(".state-field").filter({ hasText: "input_request" }).getByText("Please read the paper").first().waitFor();
  await inspect(tab, "steps");
});

test("a branch begins at a step with an edited state", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, `inspect/${thread}`);
  await tab.locator(".step-row").filter({ hasText: "→ qa" }).click();
  await tab.getByRole("button", { name: "Run from here" }).click();
  await tab.getByLabel("Edit a field").selectOption("plan");
  await tab.getByLabel("New value of plan").fill("[oops");
  await tab.getByRole("button", { name: "Start branch", exact: true }).click();
  await tab.getByText("This is not JSON").waitFor();
  await tab.getByLabel("New value of plan").fill('["another plan"]');
  await inspect(tab, "the dialog of a branch");
  await tab.getByRole("button", { name: "Start branch", exact: true }).click();
  await answered(tab, "written down");
  await openActivity(tab);
  await tab.locator(".plan").getByText("another plan").waitFor();
  const state = await server.json(`/threads/${thread}/state`);
  assert.deepEqual(state.values.plan, ["another plan"]);
  assert.equal(state.values.messages.length, 3, "the earlier answer is on the other branch");
});

test("the trace of a run is shown in the page", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, `trace/${thread}`);
  await tab.getByText("Please read the paper").first().waitFor();
  await tab.getByText(/chat scripted/).first().waitFor();
});

test("a trace shows tokens and cost, the raw request and answer of a call, failures first, and is searched", async () => {
  model.isBroken = true;
  const thread = await ask(tab, "Please read the paper, then break");
  await tab.locator(".messages .failure").waitFor();
  model.isBroken = false;
  await go(tab, `trace/${thread}`);
  const trace = tab.locator(".trace");
  const span = trace.getByRole("complementary", { name: "Selected span" });
  // What failed is open and chosen.
  await span.getByText(/the model is broken/).first().waitFor();
  await trace.locator("#trace-sums .failed").getByText(/error/).waitFor();
  await inspect(tab, "the trace of a failed run");
  const call = trace.getByRole("treeitem", { name: /^chat scripted · supervisor/ }).first();
  await call.getByText(/10 → 5 · \$0\.\d+/).waitFor();
  await call.click();
  await span.getByText("Please read the paper, then break").first().waitFor();
  await span.getByText(/mcp_agent_files/).first().waitFor();
  await trace.getByLabel("Search").fill("append_note");
  await trace.getByText(/^\d+ found$/).waitFor();
  await trace.getByLabel("Search").fill("43 seconds of arc");
  await trace.getByText(/^[1-9]\d* found$/).waitFor();
  await trace.getByLabel("Search").fill("");
  await trace.getByRole("button", { name: "Errors" }).click();
  await span.getByText(/the model is broken/).first().waitFor();
  await tab.getByRole("button", { name: "Theme: system" }).click();
  await tab.getByRole("button", { name: "Theme: light" }).click();
  await tab.locator("html[data-theme=dark]").waitFor({ state: "attached" });
  await inspect(tab, "a dark trace");
});

test("the trace of an earlier run is chosen from the list", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await askMore(tab, "What of the moon?");
  await go(tab, `trace/${thread}`);
  const trace = tab.locator(".trace");
  await trace.getByText(/run 2 done/).first().waitFor();
  await tab.getByLabel("Run", { exact: true }).selectOption("1");
  await trace.getByText(/run 1 done/).first().waitFor();
});

test("runs are chosen by the numbers that traces have, whatever was cancelled before it began", async () => {
  model.hold();
  const { thread_id: thread } = await server.json("/threads", {});
  const runs = `/threads/${thread}/runs`;
  const run = (question) => server.json(runs, { assistant_id: "swarm", input: { question }, multitask_strategy: "enqueue" });
  await run("Tell me a slow story");
  const { run_id } = await run("Hello?");
  await server.json(`${runs}/${run_id}/cancel?wait=0`, {}).catch(() => {});
  model.release();
  const { run_id: last } = await run("Hello again?");
  await (await fetch(`${server.url}${runs}/${last}/join`)).text();
  await go(tab, `trace/${thread}`);
  const picker = tab.getByLabel("Run", { exact: true });
  await picker.locator("option", { hasText: "Run 1" }).waitFor({ state: "attached" });
  assert.deepEqual(await picker.locator("option").evaluateAll((all) => all.map((one) => one.value)), ["", "2", "1"]);
  await picker.selectOption("2");
  await tab.locator(".trace").getByText(/run 2 done/).first().waitFor();
});

test("each turn says how long it worked, with how many calls, tokens and dollars, and opens to them", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await askMore(tab, "Hello?");
  const folded = tab.locator(".activity.done > summary");
  const { runs } = await server.json(`/v1/runs?thread=${thread}`);
  for (const [index, run] of runs.toReversed().entries()) {
    const tokens = new RegExp(`^Worked .*${run.tokens.toLocaleString("en-US")} tokens · \\$0\\.\\d+$`);
    await folded.nth(index).filter({ hasText: tokens }).waitFor();
  }
  await folded.first().filter({ hasText: "· 1 call ·" }).waitFor();
  await tab.reload();
  await folded.first().click();
  const call = tab.locator(".activity.done").first().locator(".call").filter({ hasText: "paper.md" });
  await call.locator(".call-facts").getByText(/ms|s/).waitFor();
  await inspect(tab, "the work of an earlier turn");
});

test("two threads are compared step by step, with their totals", async () => {
  const one = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  const other = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await go(tab, `inspect/${one}`);
  await tab.getByLabel("More actions").click();
  await tab.getByRole("link", { name: "Compare" }).click();
  await tab.getByLabel("Other thread").selectOption(other);
  await tab.getByRole("status").getByText(/steps? differ/).waitFor();
  const totals = tab.getByRole("region", { name: "Totals" });
  await totals.getByRole("row").filter({ hasText: "Tool calls" }).getByText("1").waitFor();
  await tab.locator(".changes dd").first().waitFor();
  await inspect(tab, "a comparison");
  await tab.getByLabel("Other thread").selectOption(one);
  await tab.getByText("Both runs are identical").waitFor();
});

test("two runs of one thread are compared", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await askMore(tab, "Hello?");
  await go(tab, `compare/${thread}`);
  await tab.getByLabel("Other thread").selectOption(thread);
  await tab.getByLabel("Run", { exact: true }).selectOption("1");
  await tab.getByLabel("Its run").selectOption("2");
  const totals = tab.getByRole("region", { name: "Totals" });
  await totals.getByRole("columnheader", { name: /run 1$/ }).waitFor();
  await totals.getByRole("columnheader", { name: /run 2$/ }).waitFor();
  await totals.getByRole("row", { name: "Tool calls 1 0" }).waitFor();
  await tab.getByRole("status").getByText(/steps? differ/).waitFor();
});

test("a thread is replayed to the same bytes, and with other prompts to its first divergence", async () => {
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, `replay/${thread}`);
  await tab.getByRole("status").getByText(/each committed the same bytes/).waitFor();
  await inspect(tab, "a replay");
  await mkdir(join(server.home, "words"), { recursive: true });
  const prompt = await readFile(join(ROOT, "prompts/supervisor.md"), "utf8");
  await writeFile(join(server.home, "words/supervisor.md"), `${prompt}\nBe brief.\n`);
  await writeFile(join(server.home, "perihelion.toml"), `${PRICES}[prompts]\ndir = "words"\n`);
  await server.kill();
  await server.start();
  await tab.reload();
  const diverged = tab.getByRole("region", { name: "First divergence" });
  await diverged.getByRole("heading", { name: /supervisor/ }).waitFor();
  await diverged.locator(".changes .new").first().waitFor();
  await inspect(tab, "a divergence");
});
