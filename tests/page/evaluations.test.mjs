/** X9: answers are rated, become a data set, models are compared on it, and a prompt is tried on a recorded call. */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, ask, confirm, go, inspect } from "./browser.mjs";
import { setStage } from "./stage.mjs";

let model, server, tab;
setStage({}, (stage) => ({ model, server, tab } = stage));

/** Asks, and rates the answer. */
async function rate(question, thumb, { note = "", labels = "" } = {}) {
  const thread = await ask(tab, question);
  await answered(tab, "Hello from");
  await tab.getByRole("button", { name: thumb }).click();
  await tab.getByLabel("Note", { exact: true }).fill(note);
  await tab.getByLabel("Labels", { exact: true }).fill(labels);
  await tab.getByRole("button", { name: "Save" }).click();
  await tab.getByLabel("Labels", { exact: true }).waitFor({ state: "detached" });
  return thread;
}

test("rated answers are downloaded as a data set, on which models are compared", async () => {
  await go(tab, "evaluations");
  await tab.getByText("No evaluations yet").waitFor();
  await inspect(tab, "no evaluations");
  const thread = await rate("Where is the lynx?", "Good answer", { note: "Friendly.", labels: "animals, short" });
  await tab.getByText("Friendly. · animals · short").waitFor();
  await rate("Where is the otter?", "Bad answer");

  const own = tab.waitForEvent("download");
  await tab.getByLabel("More actions").click();
  await tab.getByRole("button", { name: "Data set" }).click();
  const turns = (await readFile(await (await own).path(), "utf8")).trim().split("\n").map((line) => JSON.parse(line).turns);
  assert.deepEqual(turns, [[{ question: "Where is the otter?" }]]);
  await go(tab, "evaluations");
  const saved = tab.waitForEvent("download");
  await tab.getByRole("button", { name: "Data set from rated answers" }).click();
  const data = await readFile(await (await saved).path(), "utf8");
  const cases = data.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(cases.map(({ tags }) => tags), [["bad"], ["good", "animals", "short"]]);
  assert.deepEqual([cases[1].name, cases[1].note, cases[1].expected], [`${thread} 1`, "Friendly.", "Hello from the star."]);

  await writeFile(join(server.home, "rated.jsonl"), data);
  await server.program("eval", "rated.jsonl", "--model", "small", "--model", "large", "--judge", "wise");
  await server.program("eval", "rated.jsonl", "--role", "qa", "--model", "tiny");
  await tab.reload();
  const list = tab.getByRole("region", { name: "Evaluations" });
  await list.getByRole("row").filter({ hasText: "small, large" }).filter({ hasText: "wise" }).waitFor();
  await list.getByRole("row").filter({ hasText: "tiny" }).filter({ hasText: "qa" }).waitFor();
  await list.getByRole("checkbox").nth(1).check();
  const figures = tab.getByRole("region", { name: "Figures" });
  // The judge answers with a position, so every pair is a tie.
  await figures.getByRole("row").filter({ hasText: "large" }).getByText(/^0 won, 2 tied, 0 lost: 50 % \(9 to 91\)/).waitFor();
  await figures.getByRole("row").filter({ hasText: "small" }).getByText("100 % (34 to 100)").waitFor();
  const table = tab.getByRole("region", { name: "Cases" });
  await table.getByRole("row").filter({ hasText: `Thread ${thread.slice(0, 8)}, turn 1` }).getByText("passed").first().waitFor();
  await inspect(tab, "an evaluation");

  // Their threads are not among the conversations until they are asked for.
  await tab.getByRole("link", { name: "Threads", exact: true }).last().click();
  const evaluated = tab.getByRole("main").getByRole("listitem").filter({ hasText: "rated: " });
  await evaluated.nth(5).waitFor();
  await evaluated.first().getByText("evaluation", { exact: true }).waitFor();
  await inspect(tab, "the threads of evaluations");
  await tab.getByLabel("Include evaluations").uncheck();
  await evaluated.first().waitFor({ state: "detached" });
  const recent = tab.getByRole("list", { name: "Recent threads" });
  await recent.getByText("Where is the otter?").waitFor();
  assert.equal(await recent.getByText("rated: ").count(), 0);
  await go(tab, "evaluations");
  await list.getByRole("checkbox").nth(1).check();

  await list.getByRole("checkbox").nth(0).check();
  await tab.getByRole("heading", { name: "2 evaluations" }).waitFor();
  assert.equal(await figures.getByRole("row").count(), 4);
  await tab.getByLabel("Only cases with different results").check();
  await tab.getByText("0 cases").waitFor();
  await tab.getByLabel("Only cases with different results").uncheck();
  await table.getByRole("link", { name: "Compare" }).first().click();
  await tab.getByRole("region", { name: "Totals" }).waitFor();

  await go(tab, "evaluations");
  await list.getByRole("button", { name: "Delete" }).first().click();
  await confirm(tab, "Delete");
  await list.getByRole("row").filter({ hasText: "tiny" }).waitFor({ state: "detached" });
});

test("a changed prompt is tried on a recorded call, beside its recorded answer", async () => {
  const thread = await ask(tab, "Where is the wolf?");
  await answered(tab, "Hello from");
  await tab.getByLabel("More actions").click();
  await tab.getByRole("link", { name: "Try a prompt" }).click();
  const call = tab.getByLabel("Model call");
  await call.locator("option", { hasText: "qa" }).waitFor({ state: "attached" });
  await call.selectOption({ label: (await call.locator("option", { hasText: "qa" }).innerText()).trim() });
  const prompt = tab.getByLabel("Prompt", { exact: true });
  assert.match(await prompt.inputValue(), /answer/i);
  await prompt.fill("Answer as a pirate.");
  const before = model.asked.length;
  await tab.getByRole("button", { name: "Ask again" }).click();
  await tab.getByRole("region", { name: "New answer" }).getByText("Ahoy from the star.").waitFor();
  await tab.getByRole("region", { name: "Recorded answer" }).getByText("Hello from the star.").waitFor();
  assert.equal(model.asked.length, before + 1);
  await inspect(tab, "a prompt that is tried");
  await tab.getByRole("button", { name: "Restore the recorded prompt" }).click();
  await tab.getByRole("button", { name: "Ask again" }).click();
  await tab.getByText("Both answers are the same.").waitFor();
  const history = await server.json(`/threads/${thread}/history`, { limit: 100 });
  assert.ok(!JSON.stringify(history).includes("Ahoy"), "nothing is stored");
});
