/**
 * S3.13, S4.10, X7: every view at three widths in both themes without a violation, with real data.
 *
 * The server is the demo: bundled MCP servers, the time zone database, an analyst.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answered, go, inspect, open } from "./browser.mjs";
import { startDemo, viewsOf } from "./demo.mjs";

const WIDTHS = [390, 1024, 1440];
const THEMES = ["light", "dark"];

let server, browser, table, chart;

before(async () => {
  ({ server, browser, table, chart } = await startDemo());
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

for (const width of WIDTHS) {
  for (const theme of THEMES) {
    test(`every view is accessible and fits at ${width} pixels, ${theme}`, async () => {
      const tab = await open(browser, server.url, { width, theme });
      for (const [name, address, shown] of viewsOf(table, chart)) {
        await go(tab, address);
        await shown(tab).waitFor();
        await inspect(tab, `${name}, ${width}, ${theme}`);
      }
      assert.deepEqual(tab.faults, []);
      await tab.context().close();
    });
  }
}

test("a table is sorted, filtered and exported", async () => {
  const tab = await open(browser, `${server.url}/#/chat/${table}`);
  const data = tab.locator(".data-table").first();
  const rows = data.locator(".table-row");
  const first = async () => (await rows.first().locator("span").first().innerText()).trim();
  const names = async () => (await rows.locator("span:first-child").allInnerTexts()).map((name) => name.trim());
  await rows.first().waitFor();
  await data.getByRole("button", { name: "Sort by country" }).click();
  await data.getByRole("button", { name: "Sort by country, now ascending" }).waitFor();
  assert.deepEqual(await names(), (await names()).toSorted());
  await data.getByRole("button", { name: "Sort by zones" }).click();
  await data.getByRole("button", { name: "Sort by zones, now ascending" }).click();
  await data.getByRole("button", { name: "Sort by zones, now descending" }).waitFor();
  assert.equal(await first(), "United States");
  await data.getByLabel("Filter rows").fill("Canada");
  await data.getByText("1 of 5 rows").waitFor();
  const saved = tab.waitForEvent("download");
  await data.getByRole("button", { name: "CSV" }).click();
  assert.match((await saved).suggestedFilename(), /\.csv$/);
  await tab.context().close();
});

test("a chart is drawn, and what led to the answer is read stage by stage", async () => {
  const tab = await open(browser, `${server.url}/#/chat/${chart}`);
  const image = tab.getByRole("img", { name: /^Chart/ });
  await image.waitFor();
  assert.ok(await image.evaluate((one) => one.naturalWidth > 100));
  await tab.getByRole("button", { name: "Run details" }).click();
  await tab.getByText("Source query").click();
  await tab.getByText("grounding pack").waitFor();
  await tab.locator("details > summary").filter({ hasText: /^draft$/ }).click();
  await tab.locator(".panel .json-line").filter({ hasText: "SELECT" }).first().waitFor();
  await inspect(tab, "an open result");
  await tab.context().close();
});

test("documents are found by what they say, and memories by their user", async () => {
  const tab = await open(browser, `${server.url}/#/documents`);
  await tab.getByLabel("Search Documents").fill("natural kind");
  await tab.getByRole("region", { name: "Passages" }).locator("blockquote").first().waitFor();
  await go(tab, "memory");
  await tab.getByLabel("User").fill("ada");
  await tab.getByLabel("User").blur();
  await tab.getByText("Add a memory").click();
  await tab.getByLabel("What it is").fill("company");
  await tab.getByLabel("Value").fill("Acme");
  await tab.getByRole("button", { name: "Remember" }).click();
  const memory = tab.locator(".card").filter({ hasText: "company: Acme" });
  await memory.waitFor();
  await inspect(tab, "memories");
  await memory.locator("summary").first().click();
  await memory.getByRole("button", { name: "Delete" }).click();
  await memory.waitFor({ state: "detached" });
  await tab.context().close();
});

test("the demo shows its questions everywhere, and leads to a model of one's own", async () => {
  const tab = await open(browser, `${server.url}/#/runs`);
  const banner = tab.getByRole("complementary", { name: "Demo" });
  await banner.getByRole("button", { name: "Use your model" }).click();
  const way = tab.getByRole("dialog", { name: "Use your model" });
  await way.getByText("perihelion serve", { exact: true }).waitFor();
  await way.getByText(/OPENAI_API_KEY|perihelion init --local/).waitFor();
  await inspect(tab, "the way to a model");
  await way.getByRole("button", { name: "Close" }).click();
  await banner.getByText("Its questions").click();
  await inspect(tab, "the questions of the demo");
  await banner.getByRole("button", { name: /most time zones/ }).click();
  await answered(tab, "most time zones");
  await go(tab, "chat");
  await tab.getByRole("region", { name: "Examples" }).waitFor();
  assert.equal(await tab.getByRole("region", { name: "First steps" }).count(), 0);
  assert.deepEqual(tab.faults, []);
  await tab.context().close();
});

test("light and dark are the reader's choice and stay", async () => {
  const tab = await open(browser, server.url, { theme: "light" });
  const ground = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await tab.getByRole("button", { name: "Theme: system" }).click();
  await tab.getByRole("button", { name: "Theme: light" }).click();
  await tab.getByRole("button", { name: "Theme: dark" }).waitFor();
  const dark = await ground();
  assert.notEqual(dark, light);
  await tab.reload();
  assert.equal(await ground(), dark);
  await tab.context().close();
});
