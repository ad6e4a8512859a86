/** S3.13, S4.10: a run beside what it would do now, and beside another one. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, ask, go, inspect } from "./browser.mjs";
import { ROOT } from "./server.mjs";
import { setStage } from "./stage.mjs";

let server, tab;
setStage({}, (stage) => ({ server, tab } = stage));

test("two threads are compared step by step, with their totals", async () => {
  const one = await ask(tab, "Please read the paper");
  await answered(tab, "written down");
  const other = await ask(tab, "Hello?");
  await answered(tab, "Hello from");
  await go(tab, `inspect/${one}`);
  await tab.getByRole("navigation", { name: "The thread" }).getByRole("link", { name: "Compare" }).click();
  await tab.getByLabel("Other thread").selectOption(other);
  await tab.getByRole("status").getByText(/steps? differ/).waitFor();
  const totals = tab.getByRole("region", { name: "Totals" });
  await totals.getByRole("row").filter({ hasText: "Tool calls" }).getByText("1").waitFor();
  await tab.locator(".changes td").first().waitFor();
  await inspect(tab, "a comparison");
  await tab.getByLabel("Other thread").selectOption(one);
  await tab.getByText("Both did the same").waitFor();
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
  await writeFile(join(server.home, "perihelion.toml"), '[prompts]\ndir = "words"\n');
  await server.kill();
  await server.start();
  await tab.reload();
  const diverged = tab.getByRole("region", { name: "First divergence" });
  await diverged.getByRole("heading", { name: /supervisor/ }).waitFor();
  await diverged.locator(".changes td.old").first().waitFor();
  await inspect(tab, "a divergence");
});
