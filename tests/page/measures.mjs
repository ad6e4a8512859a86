/**
 * Measures the page: size, first view, long threads, traces and answers, Lighthouse. `make measure-page` prints the figures; `PARTS=answer,trace` some of them.
 *
 * A figure with a bound is printed as `pass` or `MISS`; a miss ends the program with 1. What they were is in docs/project/web-ui.md.
 */

import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { promisify } from "node:util";
import { answerOf, answered, ask, go, launch, open, traceFromDisk } from "./browser.mjs";
import { startModel } from "./model.mjs";
import { ROOT, startServer } from "./server.mjs";

const say = (what, figure, verdict = "") => console.log(`${verdict.padEnd(5)}${what.padEnd(64)} ${figure}`);

/** What the bounds are; each is a figure at most, but for the scores of Lighthouse. */
const BOUNDS = { firstLoadKb: 280, shellMs: 100, composerMs: 600, taskMs: 50, score: 100 };

/** Says a figure, and whether its bound is met. */
function judge(what, figure, isMet) {
  say(what, figure, isMet ? "pass" : "MISS");
  if (!isMet) process.exitCode = 1;
}

/**
 * Watches the tasks of the tab's main thread from here on; `stop` says how long they were, and whether all met their bound.
 *
 * By the clock a task is as long as it took, waits for a processor of a busy machine included; its own time is what the page can do something about.
 */
async function watch(tab) {
  const events = [];
  const session = await tab.context().newCDPSession(tab);
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await session.send("Tracing.start", { transferMode: "ReportEvents", categories: "disabled-by-default-devtools.timeline" });
  return async function stop() {
    const complete = new Promise((done) => session.once("Tracing.tracingComplete", done));
    await session.send("Tracing.end");
    await complete;
    await session.detach();
    // Other tabs, such as one that closes meanwhile, have processes of their own.
    const frames = events.flatMap(({ name, args }) => (name === "TracingStartedInBrowser" ? args.data.frames : name === "FrameCommittedInBrowser" ? [args.data] : []));
    const process = frames.findLast((frame) => frame.url.split("#")[0] === tab.url().split("#")[0])?.processId;
    const main = events.find(({ name, args, pid }) => name === "thread_name" && args.name === "CrRendererMain" && pid === process);
    if (!main) throw new Error(`the browser's trace has no tasks of ${tab.url()}`);
    const own = events.filter(({ name, pid, tid }) => name === "RunTask" && pid === process && tid === main.tid).map(({ dur = 0, tdur = 0 }) => ({ clock: dur / 1000, own: tdur / 1000 }));
    const over = (by) => own.filter((task) => task[by] > BOUNDS.taskMs);
    const most = (by) => Math.round(own.reduce((longest, task) => Math.max(longest, task[by]), 0));
    const words = `the longest of ${own.length} tasks ${most("own")} ms (by the clock ${over("clock").length} over ${BOUNDS.taskMs} ms, the longest ${most("clock")} ms)`;
    return [words, over("own").length === 0];
  };
}

async function size() {
  const names = await readdir(join(ROOT, "web/dist"));
  const zipped = async (name) => gzipSync(await readFile(join(ROOT, "web/dist", name))).length / 1024;
  const sizes = await Promise.all(names.filter((one) => /\.(js|css)$/.test(one)).map(async (name) => [name, await zipped(name)]));
  for (const [name, kb] of sizes) say(`${name}, gzip`, `${kb.toFixed(1)} KB`);
  const script = sizes.filter(([name]) => name.endsWith(".js")).reduce((sum, [, kb]) => sum + kb, 0);
  judge(`script of the first load, at most ${BOUNDS.firstLoadKb} KB`, `${script.toFixed(1)} KB`, script <= BOUNDS.firstLoadKb);
}

/** Times that the first view is opened; the median counts. */
const TIMES = 7;

async function first(browser, server) {
  const all = [];
  for (let time = 0; time < TIMES; time += 1) {
    // Each in a window of its own, with an empty cache.
    const tab = await open(browser, "about:blank");
    await tab.addInitScript(() => {
      const look = () => {
        const field = document.getElementById("question");
        if (field && document.activeElement === field) window.usable = performance.now();
        else requestAnimationFrame(look);
      };
      look();
    });
    await tab.goto(server.url);
    await tab.waitForFunction(() => window.usable);
    all.push(await tab.evaluate(() => ({ shell: performance.getEntriesByName("first-contentful-paint")[0].startTime, composer: window.usable })));
    await tab.context().close();
  }
  for (const [what, bound] of [["shell", BOUNDS.shellMs], ["composer", BOUNDS.composerMs]]) {
    const times = all.map((one) => Math.round(one[what])).toSorted((a, b) => a - b);
    const median = times[Math.floor(TIMES / 2)];
    judge(`${what === "shell" ? "shell painted" : "composer usable"}, at most ${bound} ms`, `${median} ms (${times[0]} to ${times.at(-1)})`, median <= bound);
  }
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
  const tab = await open(browser, `${server.url}/#/health`);
  await tab.getByRole("heading", { name: "Health" }).waitFor();
  const stop = await watch(tab);
  await go(tab, `chat/${thread_id}`);
  const began = Date.now();
  await answerOf(tab).getByText("Part 0", { exact: true }).waitFor();
  say("an answer of 1 MB, its beginning after", `${Date.now() - began} ms`);
  await tab.waitForFunction((parts) => document.querySelectorAll(".markdown h2").length === parts, parts, { polling: 200 });
  say("an answer of 1 MB, its end after", `${Date.now() - began} ms`);
  judge("an answer of 1 MB", ...(await stop()));
  await tab.context().close();
}

/** Edits a thread so often. Every hundredth edit goes back by a step, which leaves a snapshot, so that none has to read all steps before it. */
async function edited(server, count) {
  const { thread_id } = await server.json("/threads", {});
  let [last, before] = [null, null];
  for (let made = 0; made < count; made += 1) {
    const back = made % 100 === 99 ? { checkpoint_id: before.checkpoint_id } : {};
    before = last;
    last = (await server.json(`/threads/${thread_id}/state`, { values: { plan: [String(made)] }, ...back })).checkpoint;
  }
  return thread_id;
}

async function steps(browser, server, count) {
  const thread_id = await edited(server, count);
  const tab = await open(browser, `${server.url}/#/health`);
  await tab.getByRole("heading", { name: "Health" }).waitFor();
  const stop = await watch(tab);
  const began = Date.now();
  await go(tab, `inspect/${thread_id}`);
  await tab.locator(".step-row").first().waitFor();
  say(`a thread of ${count} steps, the newest after`, `${Date.now() - began} ms`);
  const more = tab.getByRole("button", { name: "Older steps" });
  while (await more.count()) {
    const before = await tab.locator(".virtual-all").evaluate((one) => one.style.height);
    await more.click();
    await tab.waitForFunction((height) => document.querySelector(".virtual-all").style.height !== height || !document.querySelector(".inspector button.older"), before);
  }
  await tab.locator(".steps").evaluate(async (list) => {
    for (let top = 0; top < list.scrollHeight; top += list.scrollHeight / 50) {
      list.scrollTop = top;
      await new Promise(requestAnimationFrame);
    }
  });
  judge(`a thread of ${count} steps, read whole and scrolled`, ...(await stop()));
  await tab.context().close();
}

/** A real trace whose spans stand in it over and over. */
async function trace(browser, server, thread, count) {
  const address = `${server.url}/v1/threads/${thread}/trace/page`;
  const given = await (await fetch(address)).text();
  const page = process.env.PAGE_FROM_DISK ? await traceFromDisk(given) : given;
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
  await context.route(address, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body }));
  const tab = await context.newPage();
  const opened = await watch(tab);
  const began = Date.now();
  await tab.goto(address);
  await tab.locator('[role="treeitem"]').first().waitFor();
  say(`a trace of ${count} spans, its first rows after`, `${Date.now() - began} ms`);
  judge(`a trace of ${count} spans, opened`, ...(await opened()));
  const unfolded = await watch(tab);
  await tab.getByRole("button", { name: "Expand all" }).click();
  await tab.locator("#trace-rows").evaluate(async (list) => {
    for (let top = 0; top < list.scrollHeight; top += list.scrollHeight / 50) {
      list.scrollTop = top;
      await new Promise(requestAnimationFrame);
    }
  });
  judge(`a trace of ${count} spans, unfolded and scrolled`, ...(await unfolded()));
  await context.close();
}

/** A table of 100,000 rows, sorted and filtered. */
async function table(browser, server) {
  const tab = await open(browser, server.url);
  await ask(tab, "Please use rows now");
  await answered(tab, "written down");
  await tab.getByRole("button", { name: "All 100,000 rows" }).click();
  const rows = tab.locator(".data-table").first();
  await rows.getByText("100,000 rows").waitFor();
  const stop = await watch(tab);
  await rows.getByRole("button", { name: "Sort by name" }).click();
  await rows.getByRole("button", { name: "Sort by name, now ascending" }).waitFor();
  await rows.getByLabel("Filter rows").fill("NAME 123");
  await rows.getByText("100 of 100,000 rows").waitFor();
  judge("a table of 100,000 rows, sorted and filtered", ...(await stop()));
  await tab.context().close();
}

async function lighthouse(server) {
  const home = await mkdtemp(join(tmpdir(), "lighthouse-"));
  const chrome = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const args = ["--yes", "lighthouse@13.5.0", server.url, "--quiet", "--output=json", `--output-path=${home}/report.json`, "--chrome-flags=--headless=new --no-sandbox --disable-gpu", "--preset=desktop"];
  await promisify(execFile)("npx", args, { cwd: home, env: { ...process.env, CHROME_PATH: chrome } });
  const report = JSON.parse(await readFile(join(home, "report.json"), "utf8"));
  for (const { id, title, score } of Object.values(report.categories)) {
    const points = Math.round(score * 100);
    const what = `Lighthouse ${report.lighthouseVersion}, ${title}`;
    if (id === "accessibility" || id === "best-practices") judge(what, points, points >= BOUNDS.score);
    else say(what, points);
  }
  for (const audit of Object.values(report.audits)) if (audit.score !== null && audit.score < 0.9) say(`  ${audit.id}`, `${audit.title} ${audit.displayValue ?? ""}`);
  await rm(home, { recursive: true, force: true });
}

const model = await startModel();
const server = await startServer({ model: model.url, further: ["asker"] });
const browser = await launch();

async function realTrace() {
  const tab = await open(browser, server.url);
  const thread = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  await tab.context().close();
  await trace(browser, server, thread, 20_000);
}

const PARTS = {
  size,
  first: () => first(browser, server),
  trace: realTrace,
  table: () => table(browser, server),
  answer: () => answer(browser, server),
  steps: () => steps(browser, server, Number(process.env.STEPS ?? 10_000)),
  lighthouse: () => lighthouse(server).catch((error) => judge("Lighthouse", `did not run: ${error.message.slice(0, 300)}`, false)),
};

try {
  for (const part of process.env.PARTS?.split(",") ?? Object.keys(PARTS)) await PARTS[part]();
} finally {
  await browser.close();
  await server.stop();
  model.close();
}
