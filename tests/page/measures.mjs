/**
 * Measures the page: size, first view, long threads, traces and answers, Lighthouse. `make measure-page` prints the figures.
 *
 * Nothing here fails for being slow: figures of a busy machine say little. What they were is in docs/page.md.
 */

import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { promisify } from "node:util";
import { answerOf, answered, ask, go, launch, open } from "./browser.mjs";
import { startModel } from "./model.mjs";
import { ROOT, startServer } from "./server.mjs";

const say = (what, figure) => console.log(`${what.padEnd(64)} ${figure}`);

/** Gathers tasks over 50 ms from here on. */
const watch = (tab) => tab.evaluate(() => {
  window.tasks = [];
  new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: "longtask" });
});
const longest = async (tab) => {
  const tasks = await tab.evaluate(() => window.tasks);
  return tasks.length ? `${tasks.length} tasks over 50 ms, the longest ${Math.max(...tasks)} ms` : "no task over 50 ms";
};

async function size() {
  const names = await readdir(join(ROOT, "web/dist"));
  for (const name of names.filter((one) => /\.(js|css)$/.test(one))) say(`${name}, gzip`, `${(gzipSync(await readFile(join(ROOT, "web/dist", name))).length / 1024).toFixed(1)} KB`);
}

async function first(browser, server) {
  const tab = await open(browser, server.url);
  await tab.getByRole("heading", { name: "What do you want to know?" }).waitFor();
  const times = await tab.evaluate(() => performance.getEntriesByType("paint").map((entry) => [entry.name, Math.round(entry.startTime)]));
  for (const [name, ms] of times) say(`first view, ${name}`, `${ms} ms`);
  await tab.context().close();
}

/** Paragraphs, lists, code and tables, as models write them. */
function longAnswer(bytes) {
  const part = (index) => `## Part ${index}\n\nThe *perihelion* of Mercury moves by **43** seconds of arc, see [1].\n\n* one\n* two \`code\`\n\n\`\`\`\nlet x = ${index};\n\`\`\`\n\n| a | b |\n|---|---|\n| ${index} | 2 |\n\n`;
  let text = "";
  for (let index = 0; text.length < bytes; index += 1) text += part(index);
  return { text, parts: text.split("## Part").length - 1 };
}

async function answer(browser, server) {
  const { thread_id } = await server.json("/threads", {});
  const { text, parts } = longAnswer(1 << 20);
  await server.json(`/threads/${thread_id}/state`, { values: { messages: [{ type: "human", content: "All of it?" }, { type: "ai", name: "qa", content: text }] } });
  const tab = await open(browser, `${server.url}/#/fleet`);
  await tab.getByRole("heading", { name: "Fleet" }).waitFor();
  await watch(tab);
  await go(tab, `chat/${thread_id}`);
  const began = Date.now();
  await answerOf(tab).getByText("Part 0", { exact: true }).waitFor();
  say("an answer of 1 MB, its beginning after", `${Date.now() - began} ms`);
  await tab.waitForFunction((parts) => document.querySelectorAll(".markdown h2").length === parts, parts);
  say("an answer of 1 MB, its end after", `${Date.now() - began} ms`);
  say("an answer of 1 MB", await longest(tab));
  await tab.context().close();
}

async function steps(browser, server, count) {
  const { thread_id } = await server.json("/threads", {});
  for (let made = 0; made < count; made += 1) await server.json(`/threads/${thread_id}/state`, { values: { plan: [String(made)] } });
  const tab = await open(browser, `${server.url}/#/fleet`);
  await tab.getByRole("heading", { name: "Fleet" }).waitFor();
  await watch(tab);
  const began = Date.now();
  await go(tab, `inspect/${thread_id}`);
  await tab.locator(".step-row").first().waitFor();
  say(`a thread of ${count} steps, the newest after`, `${Date.now() - began} ms`);
  const more = tab.getByRole("button", { name: "Older steps" });
  while (await more.count()) {
    const before = await tab.locator(".virtual-all").evaluate((one) => one.style.height);
    await more.click();
    await tab.waitForFunction((height) => document.querySelector(".virtual-all").style.height !== height || !document.querySelector(".inspector button.link"), before);
  }
  await tab.locator(".steps").evaluate(async (list) => {
    for (let top = 0; top < list.scrollHeight; top += list.scrollHeight / 50) {
      list.scrollTop = top;
      await new Promise(requestAnimationFrame);
    }
  });
  say(`a thread of ${count} steps, read whole and scrolled`, await longest(tab));
  await tab.context().close();
}

/** A real trace whose spans stand in it over and over. */
async function trace(browser, server, thread, count) {
  const address = `${server.url}/v1/threads/${thread}/trace/page`;
  const page = await (await fetch(address)).text();
  const held = /<script type="application\/json" class="spans">(.*?)<\/script>\n/gs;
  const [root, ...rest] = [...page.matchAll(held)].flatMap(([, part]) => JSON.parse(part));
  const named = (id, copy) => (id === root.span_id ? id : `${id}${copy}`);
  const copies = Array.from({ length: Math.ceil(count / rest.length) }, (_, copy) => rest.map((span) => ({ ...span, span_id: named(span.span_id, copy), parent: named(span.parent, copy) })));
  const spans = [root, ...copies.flat().slice(0, count - 1)];
  // In parts of as many bytes as the program writes.
  const parts = [[]];
  for (let size = 0; spans.length; ) {
    const span = JSON.stringify(spans.shift()).replaceAll("<", "\\u003c");
    if (parts.at(-1).length && size + span.length > 65_536) (parts.push([]), (size = 0));
    parts.at(-1).push(span);
    size += span.length + 1;
  }
  const written = parts.map((part) => `<script type="application/json" class="spans">[${part.join(",")}]</script>\n`).join("");
  let isFirst = true;
  const body = page.replace(held, () => (isFirst ? ((isFirst = false), written) : ""));
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: "longtask", buffered: true });
  });
  await context.route(address, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body }));
  const tab = await context.newPage();
  const began = Date.now();
  await tab.goto(address);
  await tab.locator('[role="treeitem"]').first().waitFor();
  say(`a trace of ${count} spans, its first rows after`, `${Date.now() - began} ms`);
  say(`a trace of ${count} spans, opened`, await longest(tab));
  await tab.evaluate(() => (window.tasks.length = 0));
  await tab.getByRole("button", { name: "Expand all" }).click();
  await tab.locator("#rows").evaluate(async (list) => {
    for (let top = 0; top < list.scrollHeight; top += list.scrollHeight / 50) {
      list.scrollTop = top;
      await new Promise(requestAnimationFrame);
    }
  });
  say(`a trace of ${count} spans, unfolded and scrolled`, await longest(tab));
  await context.close();
}

async function lighthouse(server) {
  const home = await mkdtemp(join(tmpdir(), "lighthouse-"));
  const chrome = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const args = ["--yes", "lighthouse@13.5.0", server.url, "--quiet", "--output=json", `--output-path=${home}/report.json`, "--chrome-flags=--headless=new --no-sandbox --disable-gpu", "--preset=desktop"];
  await promisify(execFile)("npx", args, { cwd: home, env: { ...process.env, CHROME_PATH: chrome } });
  const report = JSON.parse(await readFile(join(home, "report.json"), "utf8"));
  for (const { title, score } of Object.values(report.categories)) say(`Lighthouse ${report.lighthouseVersion}, ${title}`, Math.round(score * 100));
  for (const audit of Object.values(report.audits)) if (audit.score !== null && audit.score < 0.9) say(`  ${audit.id}`, `${audit.title} ${audit.displayValue ?? ""}`);
  await rm(home, { recursive: true, force: true });
}

const model = await startModel();
const server = await startServer({ model: model.url });
const browser = await launch();
try {
  await size();
  await first(browser, server);
  const tab = await open(browser, server.url);
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await tab.context().close();
  await trace(browser, server, thread, 20_000);
  await answer(browser, server);
  await steps(browser, server, Number(process.env.STEPS ?? 1_000));
  await lighthouse(server).catch((error) => say("Lighthouse", `did not run: ${error.message.slice(0, 300)}`));
} finally {
  await browser.close();
  await server.stop();
  model.close();
}
