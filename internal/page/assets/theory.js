// Theory with sliders, and real runs laid over it.
import { $, make, colour, number, address, redraw, follow, figureOf, Lines, context, ticks, viridis, ask } from "./common.js";

// name, text, least, largest, step, at first, how the value is written
const sliders = [
  ["density", "density ρ", 0.01, 1, 0.01, 0.2, v => number(v, 3)],
  ["alpha", "sensors M/N = α", 0.1, 2, 0.01, 0.6, v => number(v, 3)],
  ["p", "signals P", 1, 30, 1, 5, v => v],
  ["noise", "noise log₁₀ Δ", -12, -1, 0.5, -6, v => number(10 ** v, 2)],
  ["width", "s within 1 ±", 0, 0.9, 0.01, 0.1, v => number(v, 3)],
  ["n", "N of runs", 100, 2000, 100, 400, v => v],
];
const cells = 20, densities = [0.05, 1], alphas = [0.1, 2];

export class Theory {
  constructor() {
    this.values = {};
    this.asked = {};
    this.runs = [];
    this.seed = 1;
    for (const [name, text, min, max, step, otherwise, words] of sliders) {
      const out = make("output"), input = make("input", { type: "range", min, max, step, ariaLabel: text });
      input.oninput = () => { this.set({ [name]: +input.value }); };
      this.values[name] = { input, otherwise, tell: () => { out.textContent = words(+input.value); } };
      $("sliders").append(make("label", {}, text, input, out));
    }
    const buttons = make("p", { className: "fields" });
    buttons.append(make("button", { type: "button", onclick: () => this.run() }, "run a real instance"), make("button", { type: "button", className: "quiet", onclick: () => this.clear() }, "take runs away"));
    this.said = make("span", { className: "note", role: "status" });
    buttons.append(this.said);
    $("sliders").append(buttons);
    $("sliders").onsubmit = e => e.preventDefault();
    const note = "Lines are theory: mean squared error of signals x and of s. Points are runs, after the best common factor.";
    this.plot = new Lines($("theory-plots"), { title: "Trajectory", x: "iteration", log: true, note }, this.lines());
    this.plane = new Plane($("theory-plots"), (density, alpha) => { this.set({ density, alpha }); this.run(); });
  }

  show() {
    this.hidden = false;
    for (const [name, v] of Object.entries(this.values)) { v.input.value = address.get(name, v.otherwise); v.tell(); }
    this.change(true);
  }
  hide() { this.hidden = true; this.planing?.abort(); this.runs.forEach(r => r.events?.close()); }

  at(name) { return +this.values[name].input.value; }
  parameters() {
    const w = this.at("width");
    return { density: this.at("density"), p: this.at("p"), noise_var: 10 ** this.at("noise"), lo: +(1 - w).toFixed(6), hi: +(1 + w).toFixed(6) };
  }
  set(changes) {
    for (const [name, value] of Object.entries(changes)) { this.values[name].input.value = value; this.values[name].tell(); }
    clearTimeout(this.writing); // browsers allow few changes of the address a second
    this.writing = setTimeout(() => address.set(Object.fromEntries(Object.keys(changes).map(n => [n, this.at(n)]).concat(Object.entries(this.values).filter(([, v]) => +v.input.value !== v.otherwise).map(([n]) => [n, this.at(n)])))), 300);
    this.change();
  }

  // change asks anew.
  change(all) {
    const { density, ...plane } = this.parameters(), question = JSON.stringify({ density, ...plane, alpha: this.at("alpha") });
    if (this.question !== question) { this.question = question; this.clear(true); }
    this.plane.mark(density, this.at("alpha"));
    if (all || this.planeKey !== JSON.stringify(plane)) { this.planeKey = JSON.stringify(plane); this.fill(plane); }
    this.ask("trajectory", t => { this.theory = t; redraw(this); });
    this.ask("thresholds", l => this.limits(l));
  }
  // ask has one question of a kind at a time under way: while a slider moves, the latest is asked next.
  async ask(what, take) {
    const state = this.asked[what] ||= {};
    state.again = true;
    if (state.busy) return;
    state.busy = true;
    while (state.again && !this.hidden) {
      state.again = false;
      try {
        take(await (await ask(`api/theory/${what}?` + new URLSearchParams({ ...this.parameters(), alpha: this.at("alpha") }))).json());
        this.said.textContent = "";
      } catch (e) { this.said.textContent = e.message; }
    }
    state.busy = false;
  }
  limits(l) {
    const alpha = this.at("alpha"), list = [["min", l.alpha_min, "counting: below it noiseless signals cannot be recovered exactly"], ["CS", l.alpha_cs, "AMP's limit were the gains known, without noise"], ["cal", l.alpha_cal, "cal-AMP's limit, to an error of 10⁻⁵"]];
    $("limits").replaceChildren(...list.flatMap(([name, v, what]) => [make("dt", {}, "α", make("sub", {}, name)), make("dd", {}, v == null ? "none" : number(v, 4) + (alpha > v ? " <" : " >") + " α"), make("dd", { className: "what" }, what)]));
  }

  // The plane comes cell by cell; a new question ends the one before.
  async fill(parameters) {
    this.planing?.abort();
    const asking = this.planing = new AbortController();
    await new Promise(done => setTimeout(done, 150)); // while a slider moves
    if (asking.signal.aborted) return;
    this.plane.clear();
    try {
      const r = await ask("api/theory/plane?" + new URLSearchParams(parameters), { signal: asking.signal });
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const text of lines) this.plane.put(JSON.parse(text));
      }
    } catch (e) { if (e.name !== "AbortError") this.said.textContent = e.message; }
  }

  // Runs: the server draws a problem and solves it; its errors come as it does.
  async run() {
    const { density, p, noise_var, lo, hi } = this.parameters(), seed = this.seed++;
    const q = new URLSearchParams({ density, p, noise_var, lo, hi, alpha: this.at("alpha"), n: this.at("n"), seed });
    const run = { seed, rows: [] };
    this.runs = [...this.runs.slice(-3), run];
    try {
      const { id } = await (await ask("api/simulate?" + q, { method: "POST" })).json();
      run.id = id;
      run.events = new EventSource("api/events?job=" + id);
      const on = (name, f) => run.events.addEventListener(name, e => f(JSON.parse(e.data)));
      on("run.head", h => { run.columns = h.columns; });
      on("run.rows", news => { run.rows = news.fresh ? news.rows : run.rows.concat(news.rows); redraw(this); });
      on("run.end", end => { run.events.close(); this.said.textContent = end.error || ""; });
      on("jobs.head", list => { const k = list.findIndex(j => j.id === id); if (list[k]?.state === "waiting") this.said.textContent = "waits for its turn"; });
      this.said.textContent = "";
    } catch (e) { this.said.textContent = e.message; }
  }
  clear(kept) {
    this.runs.forEach(r => r.events?.close());
    this.runs = [];
    if (!kept) redraw(this);
  }

  lines() {
    return [{ label: "x, theory", colour: "blue" }, { label: "s, theory", colour: "orange" }, ...this.runs.flatMap((r, k) => [{ label: `x, run ${r.seed}`, colour: "blue", points: true }, { label: `s, run ${r.seed}`, colour: "orange", points: true }])];
  }
  draw() {
    if (!this.theory) return;
    const t = this.theory.x_mse.length, most = Math.min(150, Math.max(t, ...this.runs.map(r => r.rows.length)));
    const x = Array.from({ length: most }, (_, i) => i + 1);
    const fit = list => x.map((_, i) => list[i] ?? null);
    const column = (r, name) => { const c = r.columns?.indexOf(name); const at = []; for (const row of r.rows) at[row[0] - 1] = row[c]; return fit(at); };
    this.plot.set([x, fit(this.theory.x_mse), fit(this.theory.s_mse), ...this.runs.flatMap(r => [column(r, "x_mse"), column(r, "s_mse")])], this.drawnRuns === this.runs ? null : this.lines());
    this.drawnRuns = this.runs;
  }

  key(key) {
    switch (key) {
      case "r": this.run(); return true;
      case "c": this.clear(); return true;
    }
    return false;
  }
}

// Plane is the error at the fixed point over density and α.
class Plane {
  constructor(parent, click) {
    this.figure = figureOf(parent, "Phase diagram", "Error where iterations end, in units of the signals' power. Click to run a real instance there.", () => [["density", "alpha", "error"], this.list()]);
    this.canvas = make("canvas", { className: "map", role: "img", ariaLabel: "error over density and α" });
    this.figure.append(this.canvas, this.figure.note);
    this.clear();
    this.canvas.onclick = e => {
      const b = this.canvas.getBoundingClientRect(), f = this.frame;
      const column = Math.floor((e.clientX - b.left - f.left) / f.cw), row = Math.floor((f.bottom - (e.clientY - b.top)) / f.ch);
      if (column >= 0 && column < cells && row >= 0 && row < cells) click(+value(densities, column).toFixed(4), +value(alphas, row).toFixed(4));
    };
    follow(this, this.figure);
  }
  clear() { this.errors = new Array(cells * cells); this.limits = []; redraw(this); }
  put(c) {
    if (c.column < 0) this.limits[c.row] = c; else this.errors[c.row * cells + c.column] = c.error;
    redraw(this);
  }
  mark(density, alpha) { this.at = [density, alpha]; redraw(this); }
  list() { return Array.from(this.errors, (e, k) => [value(densities, Math.floor(k / cells)), value(alphas, k % cells), e]).filter(r => r[2] !== undefined); }
  draw() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const height = Math.round(Math.min(340, Math.max(240, width * 0.66)));
    const [g] = context(this.canvas, height), left = 46, right = width - 58, top = 8, bottom = height - 38;
    const cw = (right - left) / cells, ch = (bottom - top) / cells;
    this.frame = { left, bottom, cw, ch };
    const shade = e => (Math.log10(Math.max(e, 1e-8)) + 8) / 8; // from 10⁻⁸ to 1
    this.errors.forEach((e, k) => {
      if (e === undefined) return;
      g.fillStyle = e == null ? colour("line") : viridis(1 - shade(e));
      const px = Math.round(left + Math.floor(k / cells) * cw), py = Math.round(bottom - (k % cells + 1) * ch); // whole pixels: no seams
      g.fillRect(px, py, Math.round(left + (Math.floor(k / cells) + 1) * cw) - px, Math.round(bottom - k % cells * ch) - py);
    });
    // Cells have their values in their middles.
    const x = d => left + ((d - densities[0]) / (densities[1] - densities[0]) * (cells - 1) + 0.5) * cw;
    const y = a => bottom - ((a - alphas[0]) / (alphas[1] - alphas[0]) * (cells - 1) + 0.5) * ch;
    g.fillStyle = colour("soft");
    g.textAlign = "center"; g.textBaseline = "top";
    for (const d of [0.2, 0.4, 0.6, 0.8, 1]) g.fillText(d, x(d), bottom + 5);
    g.fillText("density ρ", (left + right) / 2, bottom + 21);
    g.textAlign = "right"; g.textBaseline = "middle";
    for (const a of ticks(0.2, 2)) g.fillText(a, left - 5, y(a));
    g.fillText("α", left - 30, top + 6);
    g.save();
    g.beginPath(); g.rect(left, top, right - left, bottom - top); g.clip();
    for (const [name, dash] of [["alpha_cal", []], ["alpha_cs", [6, 4]], ["alpha_min", [2, 3]]]) {
      for (const [style, wide] of [["#000c", 4], ["#fff", 1.8]]) {
        g.strokeStyle = style; g.lineWidth = wide; g.setLineDash(dash);
        g.beginPath();
        let pen = false;
        for (let row = 0; row < cells; row++) {
          const a = this.limits[row]?.[name];
          if (this.limits[row] === undefined) continue;
          if (a == null) { pen = false; continue; }
          g[pen ? "lineTo" : "moveTo"](x(value(densities, row)), y(a));
          pen = true;
        }
        g.stroke();
      }
    }
    g.setLineDash([]);
    if (this.at) {
      for (const [style, wide] of [["#000", 4], ["#fff", 2]]) { g.strokeStyle = style; g.lineWidth = wide; g.beginPath(); g.arc(x(this.at[0]), y(this.at[1]), 6, 0, 7); g.stroke(); }
    }
    g.restore();
    for (let k = 0; k < 64; k++) { g.fillStyle = viridis(1 - k / 63); g.fillRect(right + 12, top + (1 - k / 63) * (bottom - top - 4), 12, 5); }
    g.fillStyle = colour("soft"); g.textAlign = "left";
    for (const k of [0, -2, -4, -6, -8]) g.fillText(k ? number(10 ** k) : "1", right + 28, top + 5 + (-k / 8) * (bottom - top - 10));
    const left0 = this.errors.filter(e => e !== undefined).length;
    this.figure.note.textContent = "Error where iterations end, in units of the signals' power" + (left0 < cells * cells ? ` (${left0} of ${cells * cells} cells so far)` : "") + ". Lines: cal (full), CS (dashed), min (dotted). A click runs a real instance there.";
  }
}
const value = ([lo, hi], k) => lo + (hi - lo) * k / (cells - 1);
