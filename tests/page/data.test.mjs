/** S3.13, S4.10: tables of 100,000 rows, and skills. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { answered, ask, go, inspect } from "./browser.mjs";
import { setStage } from "./stage.mjs";

let server, tab;
setStage({ further: ["asker"] }, (stage) => ({ server, tab } = stage));

const ROWS = 100_000;

test("a table of 100,000 rows is sorted, filtered and exported", async () => {
  await ask(tab, "Please use rows now");
  await answered(tab, "written down");
  const table = tab.locator(".data-table").first();
  await tab.getByRole("button", { name: "All 100,000 rows" }).click();
  await table.getByText("100,000 rows").waitFor();
  const first = () => table.locator(".table-row").first().locator("span").allInnerTexts();
  await table.getByRole("button", { name: "Sort by number" }).click();
  await table.getByRole("button", { name: "Sort by number, now ascending" }).waitFor();
  assert.equal((await first())[0].trim(), "0");
  await table.getByRole("button", { name: "Sort by number" }).click();
  await table.getByRole("button", { name: "Sort by number, now descending" }).waitFor();
  assert.equal((await first())[0].trim(), String(ROWS - 1));
  await table.getByRole("button", { name: "Sort by name" }).click();
  await table.getByRole("button", { name: "Sort by name, now ascending" }).waitFor();
  assert.equal((await first())[1].trim(), "=name 0");
  await table.locator(".virtual").evaluate((list) => (list.scrollTop = list.scrollHeight));
  await table.locator(".table-row").filter({ hasText: "=name 999" }).first().waitFor();
  await table.getByLabel("Filter rows").fill("NAME 123");
  await table.getByText("100 of 100,000 rows").waitFor();
  await table.getByLabel("Filter rows").fill("");
  await table.getByText("100,000 rows", { exact: true }).waitFor();
  const saved = tab.waitForEvent("download");
  await table.getByRole("button", { name: "CSV" }).click();
  const lines = (await readFile(await (await saved).path(), "utf8")).split("\r\n");
  assert.equal(lines.length, ROWS + 1);
  assert.equal(lines[0], "number,name,share");
  assert.match(lines[1], /^\d+,'=name 0,/, "no spreadsheet takes it for a formula");
  const kept = tab.waitForEvent("download");
  await table.getByRole("button", { name: "JSON" }).click();
  const objects = JSON.parse(await readFile(await (await kept).path(), "utf8"));
  assert.equal(objects.length, ROWS);
  assert.deepEqual(Object.keys(objects[0]), ["number", "name", "share"]);
  await inspect(tab, "a table of 100,000 rows");
});

test("ids of many digits are shown and saved with all of them, and so are columns of the same name", async () => {
  await ask(tab, "Please use ids now");
  await answered(tab, "written down");
  for (const round of ["at once", "after a refresh"]) {
    const table = tab.locator(".data-table").first();
    await table.locator(".table-row").first().getByText("9007199254740993").waitFor();
    const save = async (form) => {
      const saved = tab.waitForEvent("download");
      await table.getByRole("button", { name: form }).click();
      return readFile(await (await saved).path(), "utf8");
    };
    assert.equal(await save("CSV"), "id,id,share\r\n9007199254740993,1,0.5\r\n-1234567890123456789,2,0.25");
    const [first, second] = JSON.parse(await save("JSON"));
    assert.deepEqual([first, second.id], [{ id: "9007199254740993", id_2: 1, share: 0.5 }, "-1234567890123456789"]);
    if (round === "at once") await tab.reload();
  }
});

test("what agents learned is listed, opened and deleted", async () => {
  await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await go(tab, "skills");
  const skill = tab.locator(".card").filter({ hasText: "Read it." });
  await skill.getByText(/succeeded 1/).waitFor();
  await skill.locator("summary").click();
  await skill.locator("pre").getByText(/paper\.md/).waitFor();
  await inspect(tab, "a skill");
  await skill.getByRole("button", { name: "Delete" }).click();
  await skill.waitFor({ state: "detached" });
  await tab.getByRole("button", { name: "Undo" }).click();
  await skill.locator("summary").click();
  const kept = async () => (await server.json("/v1/skills")).skills.length;
  const before = await kept();
  // Once the page is closed, nothing can be undone.
  await skill.getByRole("button", { name: "Delete" }).click();
  await skill.waitFor({ state: "detached" });
  await inspect(tab, "a deletion that can be undone");
  await tab.reload();
  while ((await kept()) === before) await new Promise((next) => setTimeout(next, 50));
  await tab.reload();
  await tab.getByRole("heading", { name: "Skills" }).waitFor();
  await skill.waitFor({ state: "detached" });
});
