/**
 * Takes pictures of every view of the demo at three widths in both themes: `make page-pictures`.
 *
 * All of them go to the directory that is named first, those of the documents to the one named second, as WebP.
 */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ask, go, open, traceFromDisk } from "./browser.mjs";
import { startDemo, viewsOf } from "./demo.mjs";
import { startServer } from "./server.mjs";

const [all, documents] = process.argv.slice(2);
const SIZES = [[1440, 900], [1024, 768], [390, 844]];

/** Pictures that the documents show: view, width, theme, name. */
const SHOWN = {
  "thread-1440-light": "page-thread",
  "working-1440-light": "page-working",
  "steps-1440-dark": "page-steps",
  "trace-1440-light": "page-trace",
  "thread-390-dark": "page-phone",
  "saved-trace": "trace-page",
};

await mkdir(all, { recursive: true });
await mkdir(documents, { recursive: true });
const { server, browser, table, chart } = await startDemo();
const studio = await browser.newPage();

/** Writes a picture as WebP, which a browser makes of what it took. */
async function picture(tab, name) {
  const taken = (await tab.screenshot()).toString("base64");
  const address = await studio.evaluate(async (data) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.86);
  }, taken);
  const bytes = Buffer.from(address.split(",")[1], "base64");
  await writeFile(join(all, `${name}.webp`), bytes);
  if (SHOWN[name]) await writeFile(join(documents, `${SHOWN[name]}.webp`), bytes);
}

/** Takes a picture of a trace as it is saved. */
async function savedTrace() {
  const address = `${server.url}/v1/threads/${table}/trace/page`;
  const given = await (await fetch(address)).text();
  const body = process.env.PAGE_FROM_DISK ? await traceFromDisk(given) : given;
  const tab = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  await tab.route(address, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body }));
  await tab.goto(address);
  await tab.getByRole("treeitem").nth(4).waitFor();
  await picture(tab, "saved-trace");
  await tab.close();
}

const oidc = { issuer: "https://login.example.org", client_id: "perihelion", public_url: "https://agents.example.org", name: "Example" };
const guarded = await startServer({ token: "open-sesame-and-come-in", env: { PERIHELION_SERVE_OIDC: JSON.stringify(oidc) } });

/** Takes a picture of the login form, with all the ways to log in. */
async function login(width, height, theme) {
  const tab = await open(browser, guarded.url, { width, height, theme });
  await tab.getByRole("link", { name: "Log in with Example" }).waitFor();
  await picture(tab, `login-${width}-${theme}`);
  await tab.context().close();
}

try {
  await savedTrace();
  for (const [width, height] of SIZES) {
    for (const theme of ["light", "dark"]) {
      const tab = await open(browser, server.url, { width, height, theme });
      for (const [name, address, shown] of viewsOf(table, chart)) {
        await go(tab, address);
        await shown(tab).waitFor();
        await tab.waitForTimeout(300);
        await picture(tab, `${name}-${width}-${theme}`);
      }
      await ask(tab, "Draw how many clock changes there were in each year since 2000.");
      await tab.locator(".call").nth(2).waitFor();
      await picture(tab, `working-${width}-${theme}`);
      await tab.locator('.messages[aria-busy="false"]').waitFor();
      await tab.context().close();
      await login(width, height, theme);
    }
  }
} finally {
  await browser.close();
  await Promise.all([server.stop(), guarded.stop()]);
}
