/**
 * S3.13, S4.10, X7: every view at three widths in both themes without a violation, with real data; their pictures.
 *
 * The server is the demo: bundled MCP servers, the time zone database, an analyst. `PICTURES` names a directory for the pictures.
 */

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answerOf, answered, ask, go, inspect, launch, open } from "./browser.mjs";
import { ROOT, startServer } from "./server.mjs";

const WIDTHS = [375, 768, 1280];
const THEMES = ["light", "dark"];
const PICTURES = process.env.PICTURES;

let server, browser, table, chart;

before(async () => {
  server = await startServer();
  const sent = await fetch(`${server.url}/v1/documents?name=agents.md`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: await readFile(join(ROOT, "docs/guides/custom-agents.md")) });
  assert.equal(sent.status, 200);
  browser = await launch();
  const tab = await open(browser, server.url);
  table = await ask(tab, "Which five countries have the most time zones?");
  await answered(tab, "most time zones");
  chart = await ask(tab, "Draw how many clock changes there were in each year since 2000.");
  await answered(tab, "most clock changes");
  assert.deepEqual(tab.faults, []);
  await tab.context().close();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function picture(tab, name) {
  if (!PICTURES) return;
  await mkdir(PICTURES, { recursive: true });
  await tab.screenshot({ path: join(PICTURES, `${name}.png`) });
}

/** The views, each with what shows that it is there. */
const VIEWS = [
  ["chat", () => "chat", (tab) => tab.getByRole("heading", { name: "What do you want to know?" })],
  ["thread", () => `chat/${chart}`, (tab) => tab.locator("article.answer").first()],
  ["inbox", () => "inbox", (tab) => tab.getByText("Nothing to decide")],
  ["agents", () => "agents", (tab) => tab.locator(".card").nth(2)],
  ["teams", () => "teams", (tab) => tab.locator("h1")],
  ["documents", () => "documents", (tab) => tab.getByText("Write a custom agent").first()],
  ["skills", () => "skills", (tab) => tab.locator(".card, .empty").first()],
  ["memory", () => "memory", (tab) => tab.locator(".card, .empty").first()],
  ["fleet", () => "fleet", (tab) => tab.getByText("threads idle")],
  ["account", () => "account", (tab) => tab.getByText("on this machine, without a login")],
  ["steps", () => `inspect/${table}`, (tab) => tab.locator(".step-row").first()],
  ["replay", () => `replay/${table}`, (tab) => tab.getByText(/each committed the same bytes/)],
  ["compare", () => `compare/${table}?with=${chart}`, (tab) => tab.getByRole("status").getByText(/differ/)],
  ["trace", () => `trace/${table}`, (tab) => tab.frameLocator("iframe").getByText(/execute_tool|query/).first()],
];

for (const width of WIDTHS) {
  for (const theme of THEMES) {
    test(`every view is accessible and fits at ${width} pixels, ${theme}`, async () => {
      const tab = await open(browser, server.url, { width, theme });
      for (const [name, address, shown] of VIEWS) {
        await go(tab, address());
        await shown(tab).waitFor();
        await inspect(tab, `${name}, ${width}, ${theme}`);
      }
      // What a server does not have, such as the demo teams, is said in the view; the browser logs the answer all the same.
      assert.deepEqual(tab.faults.filter((fault) => !/404/.test(fault)), []);
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
  await tab.locator(".result > summary").first().click();
  await tab.getByText("Source query").click();
  await tab.getByText("grounding pack").waitFor();
  await tab.locator("details > summary").filter({ hasText: /^draft$/ }).click();
  await tab.locator(".side .json-line").filter({ hasText: "SELECT" }).first().waitFor();
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

test("pictures of the main views", { skip: !PICTURES }, async () => {
  const wide = { width: 1280, height: 800 };
  const tab = await open(browser, `${server.url}/#/chat/${chart}`, wide);
  await tab.getByRole("img", { name: /^Chart/ }).waitFor();
  await answerOf(tab).first().waitFor();
  await picture(tab, "page-thread");
  await go(tab, `inspect/${table}`);
  await tab.locator(".step-row").first().waitFor();
  await picture(tab, "page-steps");
  await go(tab, `trace/${table}`);
  await tab.frameLocator("iframe").getByText(/execute_tool|query/).first().waitFor();
  await picture(tab, "page-trace");
  await tab.context().close();
  const dark = await open(browser, `${server.url}/#/agents`, { ...wide, theme: "dark" });
  await dark.locator(".card > summary").first().click();
  await picture(dark, "page-agents-dark");
  await dark.context().close();
  const phone = await open(browser, `${server.url}/#/chat/${table}`, { width: 375, height: 740 });
  await answerOf(phone).first().waitFor();
  await picture(phone, "page-phone");
  await phone.context().close();
});
