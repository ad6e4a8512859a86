/**
 * The trace of a run: its graph, what each node took, the waterfall, and all of the chosen span.
 *
 * A saved trace has this script within itself; the page of the service has it as a view.
 */

const ROW = 26;
const SHORT = 300; // spans up to which everything is unfolded at first
const SLICE = 16; // milliseconds of work between which the page answers

const MARKUP = `
<p id="trace-sums" role="status"></p>
<details id="trace-map">
  <summary>Graph and shares</summary>
  <div class="trace-columns">
    <svg id="trace-graph" viewBox="0 0 640 400" role="group" aria-label="Ways the run took, with how often"></svg>
    <div class="trace-scroll" tabindex="0" role="region" aria-label="What each node took"><table id="trace-shares"></table></div>
  </div>
</details>
<div id="trace-tools" role="toolbar" aria-label="Waterfall">
  <label>Search <input type="search" id="trace-search" placeholder="name, text, tag, error" spellcheck="false"></label>
  <button type="button" id="trace-previous" aria-label="Previous match">↑</button>
  <button type="button" id="trace-next" aria-label="Next match">↓</button>
  <output id="trace-found" for="trace-search"></output>
  <button type="button" id="trace-clear" hidden></button>
  <span class="trace-gap"></span>
  <button type="button" id="trace-errors">Errors</button>
  <button type="button" id="trace-slowest">Slowest</button>
  <button type="button" id="trace-unfold">Expand all</button>
  <button type="button" id="trace-fold">Collapse all</button>
  <button type="button" id="trace-zoom">Zoom to selection</button>
  <button type="button" id="trace-whole">Whole run</button>
</div>
<div id="trace-spans">
  <section id="trace-waterfall" aria-label="Waterfall">
    <div id="trace-ruler" aria-hidden="true"></div>
    <div id="trace-rows" role="tree" tabindex="0" aria-label="Spans"><div id="trace-sizer"></div></div>
  </section>
  <aside id="trace-span" aria-live="polite" aria-label="Selected span"></aside>
</div>`;

/**
 * Shows a trace within an element until the signal is aborted: `data` is what the trace says of itself, `parts` are its spans as JSON, some in each.
 */
export async function showTrace(root, data, parts, signal) {
  root.classList.add("trace");
  root.innerHTML = MARKUP;
  const $ = (id) => root.querySelector(`#trace-${id}`);

  let began = performance.now();
  /** Returns whether it is time to `rest`. */
  const tired = () => performance.now() - began > SLICE;
  /** Lets the page answer, as long work does between its slices. */
  async function rest() {
    await (globalThis.scheduler?.yield ? scheduler.yield() : new Promise((done) => setTimeout(done)));
    began = performance.now();
  }

  /** Makes an element; what is not an element becomes text, never markup. */
  function make(name, attributes = {}, ...inner) {
    const svg = $("graph").namespaceURI;
    const isSvg = ["g", "path", "circle", "text", "title", "defs", "marker"].includes(name);
    const element = isSvg ? document.createElementNS(svg, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inner.filter((one) => one !== null && one !== undefined));
    return element;
  }

  /** Milliseconds since 1970, with their fraction. */
  function moment(text) {
    const [, whole, fraction] = /^(.*?)(\.\d+)?Z$/.exec(text);
    return Date.parse(whole + "Z") + Number(fraction || 0) * 1000;
  }

  function length(ms) {
    if (ms < 1) return `${Math.round(ms * 1000)} µs`;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
    if (ms < 3600000) return `${Math.floor(ms / 60000)} min ${Math.floor((ms % 60000) / 1000)} s`;
    return `${Math.floor(ms / 3600000)} h ${Math.floor((ms % 3600000) / 60000)} min`;
  }

  /** Times in the reader's zone, which is named. */
  const clock = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, timeZoneName: "short" });

  function dollars(spent) {
    if (!spent || spent.nano_usd === undefined) return "";
    const usd = spent.nano_usd / 1e9;
    const digits = usd === 0 ? 0 : usd < 1e-4 ? 7 : usd < 1 ? 4 : 2;
    return `${spent.unpriced ? "≥ " : ""}$${usd.toFixed(digits)}`;
  }

  const tokens = (spent) => (spent ? `${spent.input_tokens.toLocaleString()} → ${spent.output_tokens.toLocaleString()}` : "");

  // The tree.

  const nodes = [], roots = [], byId = new Map();
  let t0 = Infinity, t1 = -Infinity;
  for (const part of parts) {
    if (signal?.aborted) return;
    for (const span of JSON.parse(part)) {
      const node = {
        span, children: [], parent: null, depth: 0, below: 0, place: 0, open: true,
        failed: span.status.code === "error", bad: false,
        start: moment(span.start), end: moment(span.end), text: null,
      };
      nodes.push(node);
      byId.set(span.span_id, node);
      t0 = Math.min(t0, node.start);
      t1 = Math.max(t1, node.end);
    }
    if (!tired()) continue;
    $("sums").textContent = `reading… ${nodes.length} spans`;
    await rest();
  }
  t1 = Math.max(t1, t0 + 0.001);
  for (const node of nodes) {
    node.parent = byId.get(node.span.parent) || null;
    (node.parent ? node.parent.children : roots).push(node);
    if (tired()) await rest();
  }
  roots.forEach((node, at) => { node.place = at; });
  for (const node of nodes) {
    node.depth = node.parent ? node.parent.depth + 1 : 0;
    node.children.sort((a, b) => a.start - b.start).forEach((child, at) => { child.place = at; });
    if (tired()) await rest();
  }
  for (let at = nodes.length - 1; at >= 0; at--) {
    const node = nodes[at];
    node.bad = node.bad || node.failed;
    if (node.parent) {
      node.parent.bad = node.parent.bad || node.bad;
      node.parent.below += node.below + 1;
    }
  }
  if (tired()) await rest();
  const notes = new Map();
  for (const note of data.notes) {
    if (!notes.has(note.span_id)) notes.set(note.span_id, []);
    notes.get(note.span_id).push(note);
  }

  const state = { from: t0, to: t1, selected: null, filter: null, asked: 0, visible: [], matches: [] };

  function words(node) {
    const s = node.span;
    switch (s.kind) {
      case "workflow": return [s.graph, s.runs.map((run) => `run ${run.number} ${run.status}`).join(", ")];
      case "transition": return [`${s.from} → ${s.to.join(", ") || "?"}`, s.reason === "edge" ? "" : s.reason.replace("_", " ")];
      case "chat": return [`chat ${s.model || "no answer"}`, s.role];
      case "agent": return [s.agent, [s.reflection_status, s.attempts > 1 ? `${s.attempts} attempts` : ""].filter(Boolean).join(" · ")];
      case "tool": return [(s.server ? s.server + "." : "") + s.tool, s.attempts === 0 ? "not sent" : s.attempts > 1 ? `sent ${s.attempts} times` : ""];
      case "reflection": return [`reflect · ${s.verdict || "no verdict yet"}`, `attempt ${s.attempt}${s.of ? " of " + s.of : ""}`];
      case "stage": return [s.stage, s.error ? "failed" : ""];
      default: return [`asked a person`, `${s.interrupt_kind}, ${s.answered ? "answered" : "open"}`];
    }
  }

  const haystack = (node) => (node.text ??= JSON.stringify([words(node), node.span, notes.get(node.span.span_id)]).toLowerCase());

  // Filters: a text, a node of the graph, a way between two.

  function meets(node, filter) {
    const s = node.span;
    if (filter.errors) return node.failed;
    if (filter.slowest) return filter.slowest.has(node);
    if (filter.node) return s.node === filter.node;
    if (filter.hop) return s.kind === "transition" && s.from === filter.hop.from && s.to.includes(filter.hop.to);
    return haystack(node).includes(filter.text);
  }

  /** Returns the calls, of models and tools, that took longest. */
  function slow() {
    const calls = nodes.filter((node) => node.span.kind === "chat" || node.span.kind === "tool");
    return new Set(calls.sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, 5));
  }

  /** Shows what a filter finds, unless another one was asked for before it was through. */
  async function apply(filter, label) {
    const asked = ++state.asked, matches = [];
    began = performance.now();
    for (const node of filter ? nodes : []) {
      if (meets(node, filter)) matches.push(node);
      if (tired()) await rest();
      if (asked !== state.asked) return;
    }
    state.filter = filter;
    state.matches = matches;
    const shown = new Set();
    for (const match of state.matches) {
      match.match = true;
      for (let node = match; node && !shown.has(node); node = node.parent) shown.add(node);
    }
    const matching = new Set(state.matches);
    for (const node of nodes) {
      node.match = matching.has(node);
      node.shown = !filter || shown.has(node);
      if (filter && node.shown && node.children.some((child) => shown.has(child))) node.open = true;
    }
    $("found").value = filter ? `${state.matches.length} found` : "";
    $("clear").hidden = !label;
    $("clear").textContent = label || "";
    lay();
    if (state.matches.length) select(state.matches[0]);
  }

  function step(by) {
    const list = state.matches.length ? state.matches : nodes.filter((node) => node.failed);
    if (!list.length) return;
    const at = list.indexOf(state.selected);
    const next = at < 0 ? (by > 0 ? 0 : list.length - 1) : (at + by + list.length) % list.length;
    reveal(list[next]);
    $("found").value = `${next + 1} of ${list.length}`;
  }

  // The waterfall: only rows in sight are in the document.

  function lay() {
    state.visible = [];
    const stack = [...roots].reverse();
    while (stack.length) {
      const node = stack.pop();
      if (node.shown === false) continue;
      state.visible.push(node);
      if (node.open) for (let at = node.children.length - 1; at >= 0; at--) stack.push(node.children[at]);
    }
    $("sizer").style.height = `${state.visible.length * ROW}px`;
    draw();
  }

  function draw() {
    const box = $("rows");
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 8);
    const last = Math.min(state.visible.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 8);
    const rows = [];
    for (let at = first; at < last; at++) rows.push(row(state.visible[at], at));
    box.replaceChildren($("sizer") || make("div", { id: "trace-sizer" }), ...rows);
    const selected = state.visible.indexOf(state.selected);
    if (selected >= first && selected < last) box.setAttribute("aria-activedescendant", `trace-row-${selected}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function row(node, at) {
    const [what, more] = words(node);
    const element = make("div", {
      class: `row${node.match ? " match" : ""}`, id: `trace-row-${at}`, role: "treeitem", "aria-level": node.depth + 1,
      "aria-selected": node === state.selected, "aria-setsize": (node.parent ? node.parent.children : roots).length,
      "aria-posinset": node.place + 1,
    });
    if (node.children.length) element.setAttribute("aria-expanded", node.open);
    element.style.top = `${at * ROW}px`;
    const twist = make("span", { class: "twist", "aria-hidden": "true" }, node.children.length ? (node.open ? "▾" : "▸") : "");
    const folded = !node.open && node.children.length ? ` +${node.below}` : "";
    const label = make("span", { class: `label${node.failed ? " failed" : ""}` },
      node.failed ? make("span", { role: "img", "aria-label": "failed:" }, "✗ ") : "", what, make("span", { class: "more" }, more ? ` · ${more}` : "", folded));
    const name = make("div", { class: "name" }, twist, make("span", { class: `kind ${node.span.kind}` }), label);
    name.style.paddingLeft = `${8 + node.depth * 14}px`;
    const scale = 100 / (state.to - state.from);
    const left = (node.start - state.from) * scale, wide = (node.end - node.start) * scale;
    const bar = make("div", { class: `bar ${node.span.kind}${node.failed ? " bad" : ""}${node.span.open ? " open" : ""}` });
    bar.style.left = `${left}%`;
    bar.style.width = `${Math.max(wide, 0)}%`;
    const spent = node.span.spent ? ` · ${tokens(node.span.spent)}${dollars(node.span.spent) ? ` · ${dollars(node.span.spent)}` : ""}` : "";
    const took = make("span", { class: "took" }, `${length(node.end - node.start)}${node.span.open ? " …" : ""}`, make("span", { class: "more" }, spent));
    // After the bar, before it, or on it: wherever there is room.
    const room = spent ? 40 : 18;
    if (left + wide < 100 - room) took.style.left = `calc(${Math.max(left + wide, 0)}% + 6px)`;
    else if (left > room) took.style.right = `calc(${Math.max(100 - left, 0)}% + 6px)`;
    else {
      took.classList.add("on");
      took.style.right = `calc(${Math.max(100 - left - wide, 0)}% + 6px)`;
    }
    element.append(name, make("div", { class: "track" }, bar, took));
    element.addEventListener("click", (event) => {
      if (event.target === twist) toggle(node); else select(node);
    });
    element.addEventListener("dblclick", () => toggle(node));
    return element;
  }

  function toggle(node, open = !node.open) {
    if (!node.children.length) return;
    node.open = open;
    lay();
  }

  function reveal(node) {
    for (let above = node.parent; above; above = above.parent) above.open = true;
    if (node.shown === false) { $("search").value = ""; apply(null); }
    lay();
    select(node);
  }

  function select(node) {
    state.selected = node;
    const at = state.visible.indexOf(node), box = $("rows");
    if (at >= 0) {
      if (at * ROW < box.scrollTop) box.scrollTop = at * ROW;
      if ((at + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (at + 1) * ROW - box.clientHeight;
    }
    draw();
    tell(node);
  }

  function ruler() {
    const parts = 5, wide = state.to - state.from;
    $("ruler").replaceChildren(...Array.from({ length: parts }, (_, at) => {
      const tick = make("span", {}, length(state.from - t0 + (wide * at) / parts));
      tick.style.left = `${(100 * at) / parts}%`;
      return tick;
    }));
  }

  // The selected span.

  function tell(node) {
    const s = node.span, parts = [make("h2", {}, s.name)];
    const facts = [
      ["status", s.status.code === "error" ? `error: ${s.status.message}` : s.open ? "not over" : "ok"],
      ["began", `${clock.format(node.start)} (+${length(node.start - t0)})`],
      ["took", length(node.end - node.start)],
      ["tokens", s.spent ? `${tokens(s.spent)} in ${s.spent.calls} calls` : ""],
      ["cost", dollars(s.spent)],
    ];
    const shown = new Set(["trace_id", "parent", "name", "start", "end", "status", "open", "links", "thread", "spent", "kind", "usage", "idempotency_key", "via"]);
    const texts = [];
    for (const [key, value] of Object.entries(s)) {
      if (shown.has(key) || value === null || value === "") continue;
      const simple = !["arguments", "result", "answer"].includes(key) && typeof value !== "object" && !(typeof value === "string" && (value.length > 60 || value.includes("\n")));
      if (simple) facts.push([key.replaceAll("_", " "), String(value)]);
      else if (typeof value === "object" && !Object.keys(value).length) continue;
      else if (Array.isArray(value) && value.every((one) => typeof one === "string")) facts.push([key, value.join(", ")]);
      else if (key === "tools") facts.push(["tools", value.map((one) => `${one.tool} × ${one.calls}`).join(", ")]);
      else if (key === "runs") facts.push(["runs", value.map((one) => `${one.number} ${one.status}`).join(", ")]);
      else if (key === "input") {
        if (s.input_before) texts.push(["input", `(${s.input_before} messages as in the call before)`]);
        for (const one of value) texts.push([`input · ${one.role}`, [one.content, ...(one.tool_calls || []).map((call) => `${call.name}(${pretty(call.arguments)})`)].filter(Boolean).join("\n")]);
      } else if (key === "calls") texts.push(["calls", value.map((call) => `${call.name}(${pretty(call.arguments)})`).join("\n")]);
      else texts.push([{ arguments: "input", result: "output", answer: "output" }[key] || key.replaceAll("_", " "), pretty(value)]);
    }
    for (const link of s.links || []) facts.push([link.kind.replace("_", " "), `${link.trace_id} ${link.span_id}`]);
    const list = make("dl");
    for (const [key, value] of facts) if (value) list.append(make("dt", {}, key), make("dd", {}, value));
    parts.push(list);
    for (const note of notes.get(s.span_id) || []) {
      parts.push(make("h3", {}, { loop: "again", repair: "repair", changed: "changed since the attempt before" }[note.kind]));
      parts.push(make("pre", {}, ...marked(note.text)));
    }
    for (const [key, value] of texts) parts.push(make("h3", {}, key), make("pre", { tabindex: "0" }, value));
    const raw = make("details", {}, make("summary", {}, "Raw"));
    raw.addEventListener("toggle", () => { if (raw.open && raw.children.length < 2) raw.append(make("pre", { tabindex: "0" }, JSON.stringify(s, null, 2))); });
    parts.push(raw);
    $("span").replaceChildren(...parts);
    $("span").scrollTop = 0;
  }

  function pretty(value) {
    if (typeof value !== "string") return JSON.stringify(value, null, 2);
    if (!/^\s*[[{]/.test(value)) return value;
    try { return JSON.stringify(JSON.parse(value), null, 2); } catch { return value; }
  }

  /** Reads [-removed-] and {+added+} as what they stand for. */
  function marked(text) {
    return text.split(/(\[-[\s\S]*?-\]|\{\+[\s\S]*?\+\})/).filter(Boolean).map((part) => {
      if (part.startsWith("[-") && part.endsWith("-]")) return make("del", {}, part.slice(2, -2));
      if (part.startsWith("{+") && part.endsWith("+}")) return make("ins", {}, part.slice(2, -2));
      return part;
    });
  }

  // The star.

  function star() {
    const svg = $("graph"), hops = data.overview.hops;
    const names = [...new Set(hops.flatMap((hop) => [hop.from, hop.to]))];
    if (!names.length) { svg.remove(); return; }
    const degree = (name) => hops.filter((hop) => hop.from === name || hop.to === name).length;
    const centre = names.includes("supervisor") ? "supervisor" : [...names].sort((a, b) => degree(b) - degree(a))[0];
    const around = names.filter((name) => name !== centre);
    const place = new Map([[centre, [320, 200]]]);
    around.forEach((name, at) => {
      const angle = Math.PI + (2 * Math.PI * at) / around.length;
      place.set(name, [320 + 245 * Math.cos(angle), 200 + 150 * Math.sin(angle)]);
    });
    svg.append(make("defs", {}, make("marker", { id: "trace-tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, make("path", { d: "M0 0 8 4 0 8z" }))));
    const button = (element, label, act) => {
      element.setAttribute("role", "button");
      element.setAttribute("tabindex", "0");
      element.setAttribute("aria-label", label);
      element.append(make("title", {}, label));
      element.addEventListener("click", act);
      element.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
      });
      return element;
    };
    /** Words beside what can be chosen, which says them in its own name. */
    const drawn = (x, y, words, look = "words") => make("text", { class: look, x, y, "aria-hidden": "true" }, words);
    for (const hop of hops) {
      const [ax, ay] = place.get(hop.from), [bx, by] = place.get(hop.to);
      const dx = bx - ax, dy = by - ay, far = Math.hypot(dx, dy) || 1;
      const self = hop.from === hop.to;
      // The two directions bend apart.
      const bend = 22, mx = (ax + bx) / 2 - (dy / far) * bend, my = (ay + by) / 2 + (dx / far) * bend;
      const inset = 27, shift = (x, y, tx, ty) => { const d = Math.hypot(tx - x, ty - y) || 1; return [x + ((tx - x) / d) * inset, y + ((ty - y) / d) * inset]; };
      const [sx, sy] = shift(ax, ay, mx, my), [ex, ey] = shift(bx, by, mx, my);
      const d = self ? `M${ax - 12} ${ay - 24}C${ax - 40} ${ay - 80} ${ax + 40} ${ay - 80} ${ax + 12} ${ay - 24}` : `M${sx} ${sy}Q${mx} ${my} ${ex} ${ey}`;
      const [lx, ly] = self ? [ax, ay - 66] : [(sx + 2 * mx + ex) / 4, (sy + 2 * my + ey) / 4];
      const why = hop.reasons.map((reason) => reason.replace("_", " ")).join(", ");
      svg.append(button(make("g", { class: "hop" },
        make("path", { class: "wide", d }),
        make("path", { class: "way", d, "stroke-width": 1 + Math.min(5, Math.log2(hop.count + 1)) })),
      `${hop.from} to ${hop.to}, ${hop.count} times (${why})`,
      () => { $("search").value = ""; apply({ hop }, `${hop.from} → ${hop.to}`); }),
      drawn(lx, ly + 4, hop.count > 1 ? `${hop.count}×` : "", "count"));
    }
    const shares = new Map(data.overview.agents.map((share) => [share.agent, share]));
    for (const [name, [x, y]] of place) {
      const share = shares.get(name);
      const label = share ? `${name}: ${share.turns} turns, ${length(share.milliseconds)}${share.failed ? `, ${share.failed} failed` : ""}` : name;
      const look = `node${name === centre ? " centre" : ""}${share && share.failed ? " bad" : ""}${share ? "" : " edge"}`;
      const short = name.replace(/^mcp_agent_/, "").replaceAll("__", "");
      svg.append(button(make("g", { class: look },
        make("circle", { cx: x, cy: y, r: 24 })),
      label, () => { $("search").value = ""; apply({ node: name }, name); }),
      drawn(x, y + 4, share ? String(share.turns) : ""),
      drawn(x, y + 40, short.length > 26 ? short.slice(0, 25) + "…" : short));
    }
  }

  function table() {
    const shares = data.overview.agents, priced = shares.some((share) => dollars(share.spent));
    const heads = ["node", "turns", "time", "model calls", "tool calls", "reflections", "tokens", ...(priced ? ["cost"] : [])];
    const line = (share) => [
      share.agent, share.turns + (share.failed ? ` (${share.failed} failed)` : ""), length(share.milliseconds),
      share.spent ? share.spent.calls : "", share.tool_calls || "",
      share.judged ? share.judged + (share.rejected ? ` (${share.rejected} rejected)` : "") : "",
      tokens(share.spent), ...(priced ? [dollars(share.spent)] : []),
    ];
    $("shares").append(
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...shares.map((share) => make("tr", {}, ...line(share).map((cell) => make("td", {}, String(cell)))))));
  }

  function sums() {
    $("sums").replaceChildren();
    const root = nodes[0], failed = nodes.filter((node) => node.failed).length;
    if (!root) { $("sums").append("no spans"); return; }
    const said = [words(root)[1], length(t1 - t0), root.span.spent ? `${tokens(root.span.spent)} tokens` : "", dollars(root.span.spent), `${nodes.length} spans`];
    $("sums").append(said.filter(Boolean).join(" · "));
    if (failed) $("sums").append(" · ", make("span", { class: "failed" }, failed === 1 ? "1 error" : `${failed} errors`));
    $("errors").disabled = !failed;
  }

  // Hands on.

  let later = 0;
  $("search").addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(() => {
      const text = $("search").value.trim().toLowerCase();
      apply(text ? { text } : null);
    }, 120);
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
  });
  $("clear").addEventListener("click", () => apply(null));
  $("errors").addEventListener("click", () => { $("search").value = ""; apply({ errors: true }, "errors"); });
  $("next").addEventListener("click", () => step(1));
  $("previous").addEventListener("click", () => step(-1));
  $("unfold").addEventListener("click", () => { for (const node of nodes) node.open = true; lay(); });
  $("fold").addEventListener("click", () => { for (const node of nodes) node.open = !node.parent; lay(); });
  const zoom = (from, to) => { state.from = from; state.to = Math.max(to, from + 0.001); ruler(); draw(); };
  $("zoom").addEventListener("click", () => { if (state.selected) zoom(state.selected.start, state.selected.end); });
  $("whole").addEventListener("click", () => zoom(t0, t1));
  $("slowest").addEventListener("click", () => { $("search").value = ""; apply({ slowest: slow() }, "slowest"); });
  $("rows").addEventListener("scroll", () => requestAnimationFrame(draw));
  addEventListener("resize", draw, { signal });
  $("rows").addEventListener("keydown", (event) => {
    const at = state.visible.indexOf(state.selected), node = state.selected;
    const page = Math.max(1, Math.floor($("rows").clientHeight / ROW) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: state.visible.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (to !== undefined) {
      select(state.visible[Math.min(Math.max(to, 0), state.visible.length - 1)]);
    } else if (event.key === "ArrowRight" && node) {
      if (!node.open) toggle(node, true); else if (node.children.length && state.visible[at + 1]) select(state.visible[at + 1]);
    } else if (event.key === "ArrowLeft" && node) {
      if (node.open && node.children.length) toggle(node, false); else if (node.parent) select(node.parent);
    } else if ((event.key === "Enter" || event.key === " ") && node) {
      toggle(node);
    } else {
      return;
    }
    event.preventDefault();
  });

  // In a long run, what went well is folded; the way to an error stays open.
  if (nodes.length > SHORT) for (const node of nodes) node.open = !node.parent || node.bad;
  sums();
  table();
  star();
  if (tired()) await rest();
  ruler();
  lay();
  const deepest = nodes.filter((node) => node.failed).sort((a, b) => b.depth - a.depth || a.start - b.start)[0];
  if (nodes.length) select(deepest || nodes[0]);
}
