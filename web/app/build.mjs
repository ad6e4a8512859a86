// Builds the page into ../dist, which is committed and embedded by the program, or into the directory that is named:
// `cargo build` needs no Node.
import { build } from "esbuild";
import { cp, mkdir, rm, writeFile, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";

const named = process.argv[2];
const out = named ? `${resolve(named)}/` : new URL("../dist/", import.meta.url).pathname;
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });

await build({
  entryPoints: { page: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  outdir: out,
  logLevel: "warning",
});
await build({
  entryPoints: { page: "src/styles/page.css" },
  bundle: true,
  minify: true,
  outdir: out,
  logLevel: "warning",
});
await cp("index.html", `${out}index.html`);
await cp("icon.svg", `${out}icon.svg`);

const script = await readFile(`${out}page.js`);
const size = gzipSync(script, { level: 9 }).length;
const limit = 100 * 1024;
console.log(`page.js: ${(size / 1024).toFixed(1)} KB gzip (at most 100)`);
if (size > limit) process.exit(1);
await writeFile(`${out}README.md`, "Built from `web/app` by `make page`; do not edit.\n");
