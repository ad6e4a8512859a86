// Builds the page into ../dist, which is committed and embedded by the program, or into the directory that is named:
// `cargo build` needs no Node.
import { build } from "esbuild";
import { cp, mkdir, rm, writeFile, readFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const named = process.argv[2];
const out = named ? `${resolve(named)}/` : new URL("../dist/", import.meta.url).pathname;
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });

const built = await build({
  entryPoints: { page: "src/main.tsx", style: "src/styles/page.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  outdir: out,
  // Browsers keep a file for as long as they like: another content has another name.
  entryNames: "[name]-[hash]",
  metafile: true,
  logLevel: "warning",
});
const files = Object.keys(built.metafile.outputs).map((path) => basename(path));
const script = files.find((name) => name.endsWith(".js"));
const style = files.find((name) => name.endsWith(".css"));
const page = await readFile("index.html", "utf8");
await writeFile(`${out}index.html`, page.replace("page.js", script).replace("page.css", style));
await cp("icon.svg", `${out}icon.svg`);

const size = gzipSync(await readFile(`${out}${script}`), { level: 9 }).length;
const limit = 100 * 1024;
console.log(`${script}: ${(size / 1024).toFixed(1)} KB gzip (at most 100)`);
if (size > limit) process.exit(1);
await writeFile(`${out}README.md`, "Built from `web/app` by `make page`; do not edit.\n");
