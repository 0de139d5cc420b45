// A problem or a stream alive.
import { $, make, colour, doubles, singles, number, address, csv, redraw, follow, Lines, context, ticks, ask } from "./common.js";

// plots of a run and of a stream: the columns that are drawn over the first one.
const runPlots = [
  { title: "Convergence", x: "iteration", log: true, note: "Relative change of the signal that changes most.", lines: [{ from: "change", label: "change", colour: "blue" }] },
  { title: "Errors", x: "iteration", log: true, note: "The mean squared errors that the run states; dashed, where the truth is known, what they are after the best common factor.", lines: [
    { from: "x_var", label: "x, stated", colour: "blue" }, { from: "s_var", label: "s, stated", colour: "orange" },
    { from: "x_mse", label: "x, true", colour: "blue", dash: true, truth: true }, { from: "s_mse", label: "s, true", colour: "orange", dash: true, truth: true }] },
];
const streamPlots = [
  { title: "Uncertainty", x: "sample", log: true, note: "Posterior standard deviation of s, and of the scale common to all sensors.", lines: [
    { from: "sd_median", label: "median", colour: "blue" }, { from: "sd_worst", label: "worst", colour: "orange" }, { from: "scale_sd", label: "scale", colour: "green" }] },
  { title: "Fit", x: "sample", log: true, note: "Mean χ² of the readings: 1 where the model explains them.", lines: [{ from: "chi2", label: "χ²", colour: "blue" }] },
  { title: "Work", x: "sample", log: true, note: "Iterations of a sample, and the time that it took.", lines: [{ from: "iterations", label: "iterations", colour: "blue" }, { from: "solve_ms", label: "ms", colour: "orange" }] },
];

const shows = { s: "calibration s", gain: "gain 1/s", sd: "uncertainty of s", z: "readings off by", age: "age" };
const sorts = { row: "row of W", s: "calibration s", sd: "uncertainty", z: "readings off by", broken: "brokenness", age: "age" };

export class Run {
  constructor(about) {
    this.stream = about.kind === "stream";
    this.jobs = [];
    this.known = {};
    this.fresh();
    if (this.stream) $("drop").hidden = true; else this.uploads(about);
    this.strip();
    $("cancel").onclick = () => this.cancel();
  }

  fresh() {
    this.head = this.frame = this.ended = null;
    this.rows = [];
    this.last = [];
    this.plots = null;
    this.order = null;
  }

  show() {
    this.hide();
    this.choices.forEach(f => f());
    const wanted = address.get("job");
    this.job = this.stream ? null : wanted ? +wanted : null;
    this.listen();
  }
  hide() { this.events?.close(); this.events = null; clearTimeout(this.retry); }

  listen() {
    this.hide();
    this.fresh();
    this.visible(this.stream || this.job != null);
    this.connect();
  }
  // connect hears of the server again; what is shown stays until then.
  connect() {
    this.hide();
    const events = this.events = new EventSource("api/events" + (this.job != null ? "?job=" + this.job : ""));
    const on = (name, f) => events.addEventListener(name, e => { if (events === this.events) f(JSON.parse(e.data)); });
    on("jobs.head", list => this.list(list));
    on("run.head", head => { this.fresh(); this.head = head; this.begin(); });
    on("run.rows", news => this.take(news));
    on("run.frame", frame => { this.frame = decode(frame); this.order = null; redraw(this); });
    on("run.end", end => { this.ended = end; this.end(); });
    events.onerror = () => {
      if (events !== this.events) return;
      if (events.readyState === EventSource.CLOSED) { // the browser does not try again by itself
        // The server knows no such problem any more, or refuses.
        if (this.job != null) { address.set({ job: null }); this.job = null; return this.listen(); }
        this.retry = setTimeout(() => this.connect(), 3000);
      }
      this.lose("The server does not answer; trying again.");
    };
    events.onopen = () => this.lose("");
  }
  lose(text) { this.lost = !!text; this.trouble(text); this.mark(); }
  // state is what is known of a run or stream, in the badge; what goes on does so only as long as the server says it.
  state(text, level, goesOn) { this.known = { text, level, goesOn }; this.mark(); }
  mark() {
    const { text, level, goesOn } = this.known, [now, how] = this.lost && goesOn ? ["no answer", "bad"] : [text, level];
    $("run-state").textContent = now;
    $("run-state").className = now ? "badge " + how : "";
  }

  trouble(text) { $("trouble").hidden = !text; $("trouble").textContent = text; }
  visible(yes) {
    $("run").hidden = !yes;
    for (const id of ["signals", "sensors", "report"]) $(id).hidden = true;
    for (const id of ["run-plots", "pictures", "sensor", "run-files", "said", "run-text", "run-name"]) $(id).replaceChildren();
    $("pictures").stems = $("pictures").cells = null;
    $("report-frame").removeAttribute("src");
    this.state("", "");
  }

  // The list of problems, and what became of the one that is shown.
  list(jobs) {
    this.jobs = jobs;
    $("jobs").replaceChildren(...jobs.map(j => make("li", {}, this.link(j))));
    if (this.job == null && jobs.length) {
      this.job = (jobs.find(j => j.state === "running") || jobs[jobs.length - 1]).id;
      return this.listen();
    }
    const j = jobs.find(j => j.id === this.job);
    if (!j) return;
    $("run-name").textContent = j.name;
    this.badge(j);
    const ahead = jobs.filter(o => o.state === "running" || o.state === "waiting" && o.id < j.id).length;
    if (j.state === "waiting") $("run-text").textContent = `One problem is solved at a time: ${ahead} before this one.`;
    $("run-progress").hidden = j.state !== "running" && j.state !== "waiting";
    const links = [];
    if (j.result) links.push(make("a", { href: `api/jobs/${j.id}/result.npz`, download: "" }, "result.npz"));
    if (j.report) links.push(make("a", { href: `api/jobs/${j.id}/report.html`, target: "_blank" }, "report"));
    if (j.state !== "running" && j.state !== "waiting") links.push(make("button", { className: "quiet", title: "with what is known of it, above", onclick: () => this.submit(`api/jobs/${j.id}/again?flags=${this.flags()}`) }, "solve again"));
    $("run-files").replaceChildren(...links);
    $("report").hidden = !j.report;
    const source = `api/jobs/${j.id}/report.html`;
    if (j.report && $("report-frame").getAttribute("src") !== source) this.report(source);
    if (j.error) this.said(j);
  }
  // report shows the page that calamp solve --report writes, as tall as it is.
  report(source) {
    const frame = $("report-frame");
    frame.onload = () => {
      const page = frame.contentDocument?.documentElement;
      if (!page || !frame.getAttribute("src")) return;
      const fit = () => { frame.style.height = page.offsetHeight + 2 + "px"; };
      new ResizeObserver(fit).observe(page);
      fit();
    };
    frame.src = source;
  }
  link(j) {
    const marks = { waiting: "…", running: "▸", done: "✓", failed: "✗", cancelled: "–" };
    const a = make("a", { href: "#solve&job=" + j.id, title: j.state, onclick: e => { e.preventDefault(); this.select(j.id); } }, `${marks[j.state]} ${j.id} ${j.name}`);
    if (j.id === this.job) a.setAttribute("aria-current", "true");
    return a;
  }
  select(id) {
    this.job = id;
    address.set({ job: id, sensor: null }, true);
    this.listen();
  }
  badge(j) {
    const words = { done: j.error ? ["not converged", "doubtful"] : ["done", "good"], failed: ["failed", "bad"], cancelled: ["cancelled", "doubtful"] };
    const [text, level] = words[j.state] || [j.state, ""];
    this.state(text, level, j.state === "running" || j.state === "waiting");
  }
  said(j) { $("run-text").textContent = j.error + (j.hint ? "\n" + j.hint : ""); }

  async cancel() {
    if (this.job != null) await ask(`api/jobs/${this.job}/cancel`, { method: "POST" }).catch(e => this.trouble(e.message));
  }

  begin() {
    const h = this.head;
    if (this.stream) { $("run-name").textContent = "Stream"; $("run-progress").hidden = true; this.state("live", "good", true); }
    const truth = h.s || h.signals;
    $("run-plots").replaceChildren();
    this.plots = (this.stream ? streamPlots : runPlots).map(p => {
      const lines = p.lines.filter(l => truth || !l.truth);
      const plot = new Lines($("run-plots"), { ...p, note: truth ? p.note : p.note.replace(/; dashed.*$/, ".") }, lines);
      plot.from = [p.x, ...lines.map(l => l.from)].map(name => h.columns.indexOf(name));
      return plot;
    });
    this.truth = { s: doubles(h.s), signals: (h.signals || []).map(signal) };
    this.size = this.stream ? `${count(h.m, "sensor")}, signals with ${count(h.n, "entry", "entries")}` : `${count(h.p, "signal")} with ${count(h.n, "entry", "entries")}, ${count(h.m, "sensor")} (α = ${number(h.m / h.n, 3)})`;
    if (h.complex) this.size += "; complex: sizes are shown";
  }

  take(news) {
    this.rows = news.fresh ? news.rows : this.rows.concat(news.rows);
    this.last = news.last;
    redraw(this);
  }

  // end tells what the command says on standard error: its warnings.
  end() {
    const warnings = (this.ended.said || "").split("\n").map(l => /^calamp: warning: ([a-z-]+): (.*)$/.exec(l)).filter(w => w);
    $("said").replaceChildren(...warnings.map(([, code, text]) => make("li", { className: "doubtful" }, make("strong", {}, code), make("span", {}, text))));
    redraw(this); const j = this.jobs.find(j => j.id === this.job);
    if (j) this.list(this.jobs);
  }

  draw() {
    if (!this.head || !this.plots) return;
    const at = name => this.last[this.head.columns.indexOf(name)];
    const rows = this.rows.length && this.rows[this.rows.length - 1][0] === this.last[0] ? this.rows : this.rows.concat(this.last.length ? [this.last] : []);
    for (const p of this.plots) p.set(p.from.map(c => rows.map(r => r[c])));
    const j = this.jobs.find(j => j.id === this.job);
    if (this.stream) $("run-text").textContent = this.size + (this.last.length ? `; sample ${at("sample")}, uncertainty of s ${number(at("sd_median"), 2)}, ${count(at("flagged"), "sensor")} not used` + (at("drift") ? `, gains drift by ${number(at("drift"), 2)} a sample` : "") : "; no sample yet");
    else if (!j?.error) $("run-text").textContent = this.size + (this.last.length ? `; iteration ${at("iteration")}, change ${number(at("change"), 2)}` : "");
    if (!this.stream && this.last.length) $("run-progress").firstElementChild.value = at("fraction");
    if (this.frame) { this.signals(); this.sensors(); }
  }

  // Signals, as pictures or stems.
  signals() {
    const f = this.frame, h = this.head, truth = this.truth.signals;
    $("signals").hidden = !f.signals.length;
    if (h.rows) return this.pictures(f.signals, truth, h.rows, h.cols);
    const box = $("pictures");
    if (!box.stems) {
      box.className = "stems";
      box.replaceChildren();
      box.stems = f.signals.map((_, k) => new Stems(box, this.stream ? "Latest signal" : "Signal " + k));
    }
    f.signals.forEach((s, k) => box.stems[k]?.set(s, truth[k], h.n));
    $("signals-note").textContent = truth.length ? "Blue is the estimate, rings are the truth." : "";
  }
  pictures(signals, truth, rows, cols) {
    const box = $("pictures");
    const kinds = truth.length ? [["true", truth], ["now", signals]] : [["now", signals]];
    if (box.childElementCount !== kinds.length * (signals.length + 1)) {
      box.className = "";
      box.stems = null;
      box.style.setProperty("--count", signals.length);
      box.style.setProperty("--kinds", kinds.length);
      const cells = kinds.map(([name]) => [make("span", { className: "label" }, name), ...signals.map((_, k) => make("canvas", { width: cols, height: rows, role: "img", ariaLabel: `signal ${k}, ${name}` }))]);
      // On a narrow page a signal is a row.
      const narrow = matchMedia("(max-width: 44rem)");
      const place = () => box.replaceChildren(...(narrow.matches ? cells[0].flatMap((_, k) => cells.map(c => c[k])) : cells.flat()));
      narrow.onchange = place;
      place();
      box.cells = cells;
    }
    kinds.forEach(([, list], row) => list.forEach((s, k) => grey(box.cells[row][k + 1], s.v, greyRange((truth[k] || s).v), rows, cols)));
    $("signals-note").textContent = this.stream ? "The latest, as a picture." : `The first ${signals.length} as pictures, each on one grey scale.`;
  }

  // Sensors, as a strip in some order.
  strip() {
    this.choices = [];
    const choose = (id, of, otherwise) => {
      $(id).replaceChildren(...Object.entries(of).map(([value, text]) => make("option", { value }, text)));
      this.choices.push(() => { $(id).value = address.get(id.slice(6), otherwise); });
      $(id).onchange = () => { address.set({ [id.slice(6)]: $(id).value }); this.order = null; redraw(this); };
    };
    choose("strip-show", shows, "s");
    choose("strip-sort", sorts, "row");
    $("strip-sensor").oninput = () => this.choose(parseInt($("strip-sensor").value, 10));
    $("strip-csv").onclick = () => this.table();
    $("strip").onclick = e => {
      const box = $("strip").getBoundingClientRect(), order = this.ordered();
      const at = Math.floor((e.clientX - box.left - margin) / (box.width - margin) * order.length);
      this.choose(order[Math.min(Math.max(at, 0), order.length - 1)]);
    };
    follow(this, $("strip"));
  }
  choose(mu) {
    if (!(mu >= 0 && mu < this.head?.m)) return;
    address.set({ sensor: mu });
    redraw(this);
  }
  value(name, mu) {
    const f = this.frame;
    switch (name) {
      case "row": return mu;
      case "gain": return 1 / f.s[mu];
      case "broken": return f.flags.has(mu) ? 2 : f.broken ? f.broken[mu] : NaN;
      case "truth": return this.truth.s ? this.truth.s[mu] : NaN;
      default: return f[name] ? f[name][mu] : NaN;
    }
  }
  ordered() {
    if (this.order) return this.order;
    const by = $("strip-sort").value, m = this.frame.s.length;
    const keys = Float64Array.from({ length: m }, (_, mu) => { const v = this.value(by, mu); return by === "z" ? -Math.abs(v) : by === "broken" || by === "age" ? -v : v; });
    this.order = Array.from({ length: m }, (_, mu) => mu);
    if (by !== "row") this.order.sort((a, b) => (isNaN(keys[a]) - isNaN(keys[b])) || keys[a] - keys[b] || a - b);
    return this.order;
  }
  sensors() {
    $("sensors").hidden = !this.frame.s;
    if (!this.frame.s) return;
    const show = $("strip-show").value, order = this.ordered(), f = this.frame;
    const [g, width, height] = context($("strip"), 220);
    const chosen = parseInt(address.get("sensor", ""), 10), m = order.length;
    const bars = show === "s" && f.sd;
    let lo = Infinity, hi = -Infinity;
    const see = v => { if (isFinite(v)) { lo = Math.min(lo, v); hi = Math.max(hi, v); } };
    const values = order.map(mu => this.value(show, mu));
    values.forEach(see);
    if (show === "s" && this.truth.s) this.truth.s.forEach(see);
    if (show === "sd" || show === "age") lo = 0;
    if (!(hi > lo)) { const at = isFinite(lo) ? lo : 0; lo = at - 1; hi = at + 1; }
    const room = 0.06 * (hi - lo), inside = width - margin, step = inside / m;
    const y = v => height - 6 - (v - lo + room) / (hi - lo + 2 * room) * (height - 12), x = k => margin + (k + 0.5) * step;
    g.fillStyle = colour("soft");
    g.strokeStyle = colour("grid");
    g.lineWidth = 1;
    g.textAlign = "right"; g.textBaseline = "middle";
    for (const v of ticks(lo, hi)) { line(g, margin, y(v), width, y(v)); g.fillText(number(v, 5), margin - 6, y(v)); }
    const place = order.indexOf(chosen);
    if (place >= 0) { g.fillStyle = colour("panel"); g.fillRect(x(place) - Math.max(step, 6) / 2, 0, Math.max(step, 6), height); g.strokeStyle = colour("accent"); line(g, x(place), 0, x(place), height); }
    const size = Math.min(Math.max(step * 0.7, 1.2), 5), estimate = colour("blue"), truth = colour("orange"), bad = colour("bad"), soft = colour("line");
    for (let k = 0; k < m; k++) {
      const mu = order[k];
      if (bars) { g.strokeStyle = soft; g.lineWidth = Math.max(1, Math.min(step * 0.6, 3)); line(g, x(k), y(Math.max(lo - room, f.lo ? f.lo[mu] : f.s[mu] - 2 * f.sd[mu])), x(k), y(Math.min(hi + room, f.hi ? f.hi[mu] : f.s[mu] + 2 * f.sd[mu]))); }
      if (show === "s" && this.truth.s) { g.strokeStyle = truth; g.lineWidth = 1; g.strokeRect(x(k) - size / 2, y(this.truth.s[mu]) - size / 2, size, size); }
      if (!isFinite(values[k])) continue;
      g.fillStyle = f.flags.has(mu) ? bad : estimate;
      g.fillRect(x(k) - size / 2, y(values[k]) - size / 2, size, size);
    }
    const more = [bars ? "Bars hold 95 %." : "", show === "s" && this.truth.s ? "Orange is the truth." : "", f.flags.size ? `Red: ${count(f.flags.size, "sensor")} not used.` : "", "Click on one."];
    $("strip-caption").textContent = `${count(m, "sensor")} by ${sorts[$("strip-sort").value]}. ` + more.filter(t => t).join(" ");
    this.card(chosen);
  }
  card(mu) {
    const box = $("sensor");
    if (document.activeElement !== $("strip-sensor")) $("strip-sensor").value = mu >= 0 ? mu : "";
    if (!(mu >= 0 && mu < this.head.m)) return box.replaceChildren();
    const v = name => this.value(name, mu), f = this.frame, list = [];
    const add = (name, text) => list.push(make("div", {}, make("dt", {}, name), make("dd", {}, text)));
    const is = this.head.complex ? "|s|" : "s";
    add(is + ", where y = z/s", number(v("s"), 7) + (isFinite(v("sd")) ? " ± " + number(v("sd"), 3) : ""));
    if (isFinite(v("lo"))) add("with probability 95 %", `${number(v("lo"), 6)} to ${number(v("hi"), 6)}`);
    if (f.phase) add("phase of s", number(f.phase[mu], 6) + " rad");
    add(`gain 1/${is}`, number(v("gain"), 6));
    if (isFinite(v("truth"))) { const off = (v("s") - v("truth")) / v("sd"); add("truth", number(v("truth"), 7) + (isFinite(off) ? `, ${number(Math.abs(off), 2)} sd away` : "")); }
    if (isFinite(v("z"))) add("readings off by", number(v("z"), 3) + " sd");
    if (isFinite(v("count"))) add(this.stream ? "readings learned from" : "readings", number(v("count"), 5));
    if (isFinite(v("age"))) add("samples since the latest", number(v("age"), 6));
    if (isFinite(v("offset"))) add("offset", number(v("offset"), 5));
    if (isFinite(v("noise"))) add("noise variance", number(v("noise"), 3));
    if (f.broken) add("broken, probability", number(f.broken[mu], 2));
    if (f.flags.has(mu)) add("not used", f.flags.get(mu));
    box.replaceChildren(make("div", {}, make("h3", {}, "Sensor " + mu), make("dl", {}, ...list)));
  }
  table() {
    const names = ["s", "sd", "lo", "hi", "gain", "z", "offset", "noise", "count", "age", "broken", "truth"].filter(n => n === "gain" || (n === "truth" ? this.truth.s : this.frame?.[n]));
    csv("sensors", ["sensor", ...names], this.ordered().map(mu => [mu, ...names.map(n => n === "broken" ? this.frame.broken[mu] : this.value(n, mu))]));
  }

  // Files that are dropped or chosen.
  uploads(about) {
    for (const { name, label, title, like } of about.fields) $("model").append(make("label", { title }, label, make("input", { name, placeholder: like, autocomplete: "off", spellcheck: false })));
    $("model").onsubmit = e => e.preventDefault();
    $("file").onchange = () => { for (const f of $("file").files) this.upload(f, about); $("file").value = ""; };
    $("demo").onclick = () => this.submit("api/demo");
    let depth = 0;
    const over = yes => $("drop").classList.toggle("over", yes);
    addEventListener("dragenter", e => { e.preventDefault(); depth++; over(true); });
    addEventListener("dragleave", () => { if (--depth <= 0) over(false); });
    addEventListener("dragover", e => e.preventDefault());
    addEventListener("drop", e => { e.preventDefault(); depth = 0; over(false); for (const f of e.dataTransfer.files) this.upload(f, about); });
  }
  upload(file, about) {
    if (file.size > about.upload) return this.trouble(`${file.name} has ${Math.round(file.size / 2 ** 20)} MB; files of at most ${Math.round(about.upload / 2 ** 20)} MB can be dropped here. calamp serve P.npz takes larger ones.`);
    this.submit(`api/problem?name=${encodeURIComponent(file.name)}&flags=${this.flags()}`, file);
  }
  // flags are what is said of a problem.
  flags() {
    const flags = {};
    for (const input of $("model").elements) if (input.value.trim()) flags[input.name] = input.value.trim();
    return encodeURIComponent(JSON.stringify(flags));
  }
  async submit(path, body) {
    try {
      const job = await (await ask(path, { method: "POST", body })).json();
      this.trouble("");
      this.select(job.id);
    } catch (e) { this.trouble(e.message); }
  }

  key(key) {
    const order = this.frame?.s ? this.ordered() : null;
    const move = by => {
      if (!order) return false;
      const k = order.indexOf(parseInt(address.get("sensor", ""), 10));
      this.choose(order[k < 0 ? 0 : Math.min(Math.max(k + by, 0), order.length - 1)]);
      return true;
    };
    switch (key) {
      case "ArrowRight": return move(1);
      case "ArrowLeft": return move(-1);
      case "s": { const list = $("strip-sort"); list.selectedIndex = (list.selectedIndex + 1) % list.length; list.onchange(); return true; }
      case "o": if (!this.stream) $("file").click(); return !this.stream;
      case "x": if (!$("run-progress").hidden) this.cancel(); return true;
    }
    return false;
  }
}

const margin = 56; // of the strip, for its numbers

const count = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");
const signal = s => ({ v: singles(s.v), at: singles(s.at) });
function decode(f) {
  const out = { at: f.at, signals: (f.signals || []).map(signal), flags: new Map((f.flagged || []).map(x => [x.sensor, x.reason])) };
  for (const name of ["s", "sd", "lo", "hi", "z", "broken", "count", "age", "noise", "offset"]) out[name] = doubles(f[name]);
  return out;
}

function line(g, x1, y1, x2, y2) { g.beginPath(); g.moveTo(x1, y1); g.lineTo(x2, y2); g.stroke(); }

// As in the report: from black at zero where nothing much is negative, with zero in the middle elsewhere.
function greyRange(values) {
  let lo = Infinity, hi = -Infinity;
  for (const v of values) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
  if (!(Math.max(hi, -lo) > 0)) return [0, 1];
  if (hi > 0 && lo > -0.15 * hi) return [0, hi];
  hi = Math.max(hi, -lo);
  return [-hi, hi];
}
function grey(canvas, values, [lo, hi], rows, cols) {
  const g = canvas.getContext("2d"), image = g.createImageData(cols, rows);
  for (let i = 0; i < values.length; i++) {
    const t = Math.round(255 * (values[i] - lo) / (hi - lo));
    image.data.set([t, t, t, 255], 4 * i);
  }
  g.putImageData(image, 0, 0);
}

// Stems is one signal, entry by entry.
class Stems {
  constructor(parent, title) {
    this.figure = make("figure", { className: "plot" });
    const save = make("button", { className: "quiet", onclick: () => csv(title.toLowerCase().replace(" ", "-"), this.truth ? ["entry", "estimate", "truth"] : ["entry", "estimate"], Array.from(this.s.v, (v, i) => [this.s.at ? this.s.at[i] : i, v, ...(this.truth ? [this.truth.v[i]] : [])])) }, "CSV");
    this.canvas = make("canvas", { role: "img", ariaLabel: title });
    this.canvas.style.width = "100%";
    this.figure.append(make("figcaption", {}, make("h3", {}, title), save), this.canvas);
    parent.append(this.figure);
    follow(this, this.figure);
  }
  set(s, truth, n) { Object.assign(this, { s, truth, n }); redraw(this); }
  draw() {
    if (!this.s || !this.canvas.clientWidth) return;
    const [g, width, height] = context(this.canvas, 150), inside = width - margin;
    let lo = 0, hi = 0;
    for (const list of [this.s.v, this.truth?.v || []]) for (const v of list) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
    if (hi === lo) hi = lo + 1;
    const x = i => margin + (i + 0.5) / this.n * inside, y = v => height - 8 - (v - lo) / (hi - lo) * (height - 16);
    g.fillStyle = colour("soft"); g.strokeStyle = colour("grid"); g.lineWidth = 1;
    g.textAlign = "right"; g.textBaseline = "middle";
    for (const v of ticks(lo, hi)) { line(g, margin, y(v), width, y(v)); g.fillText(number(v, 3), margin - 6, y(v)); }
    const least = 0.005 * Math.max(hi, -lo), draw = (s, how) => s.v.forEach((v, i) => { if (Math.abs(v) > least) how(x(s.at ? s.at[i] : i), y(v)); });
    g.strokeStyle = colour("orange"); g.lineWidth = 1;
    if (this.truth) draw(this.truth, (px, py) => { g.beginPath(); g.arc(px, py, 3.2, 0, 7); g.stroke(); });
    g.strokeStyle = g.fillStyle = colour("blue");
    draw(this.s, (px, py) => { line(g, px, y(0), px, py); g.fillRect(px - 1.5, py - 1.5, 3, 3); });
  }
}
