// What all views share: the address, drawing, files.
export const $ = id => document.getElementById(id);

// make creates an element; texts are never taken for markup.
export function make(tag, set = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(set)) {
    if (name in e && name !== "list") e[name] = value; else e.setAttribute(name, value);
  }
  e.append(...children.filter(c => c != null));
  return e;
}

export const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// Numbers come as base64, in double or single precision.
function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}
export const doubles = text => text == null ? null : new Float64Array(bytes(text));
export const singles = text => text == null ? null : new Float32Array(bytes(text));

const digits = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const raised = k => [...String(k)].map(c => digits[c]).join("");

// number is v as people write it.
export function number(v, places = 4) {
  if (v == null || !isFinite(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e5 || size < 1e-3) {
    const [m, e] = v.toExponential(Math.max(0, places - 2)).split("e");
    return (/^-?1(\.0*)?$/.test(m) ? m.replace(/1(\.0*)?$/, "") : m.replace(/\.?0+$/, "") + "·") + "10" + raised(+e);
  }
  return String(+v.toPrecision(places)).replace("-", "−");
}

// The address keeps what is looked at: #view&name=value&…
export const address = {
  view: "", values: new URLSearchParams(),
  read() {
    const [view, ...rest] = location.hash.slice(1).split("&");
    this.view = view;
    this.values = new URLSearchParams(rest.join("&"));
  },
  get(name, otherwise) { return this.values.get(name) ?? otherwise; },
  set(changes, visited) {
    for (const [name, value] of Object.entries(changes)) {
      if (value == null || value === "") this.values.delete(name); else this.values.set(name, value);
    }
    const text = this.values.toString();
    history[visited ? "pushState" : "replaceState"](null, "", "#" + this.view + (text ? "&" + text : ""));
  },
};

// save gives the reader a file.
export function save(name, parts, type = "text/csv") {
  const link = make("a", { href: URL.createObjectURL(new Blob(parts, { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
export function csv(name, columns, rows) {
  const cell = v => v == null || Number.isNaN(v) ? "" : typeof v === "string" && /[",\n]/.test(v) ? '"' + v.replaceAll('"', '""') + '"' : v;
  save(name + ".csv", [columns.join(",") + "\n", ...rows.map(r => Array.from(r, cell).join(",") + "\n")]);
}

// Everything is drawn in animation frames, once however often it changes.
const dirty = new Set();
let asked = false;
export function redraw(what) {
  dirty.add(what);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const all = [...dirty];
    dirty.clear();
    for (const d of all) d.draw();
  });
}
const drawn = new Set(); // what is drawn anew for another size or theme
export function follow(what, element) {
  drawn.add(what);
  new ResizeObserver(() => redraw(what)).observe(element);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(redraw));

// figureOf is the frame of a picture: a heading, CSV, a caption.
export function figureOf(parent, title, note, table) {
  const save = make("button", { className: "quiet", type: "button", title: "the numbers of this picture", onclick: () => csv(title.toLowerCase().replace(/[^a-z0-9]+/g, "-"), ...table()) }, "CSV");
  const f = make("figure", { className: "plot" }, make("figcaption", {}, make("h3", {}, title), save));
  parent.append(f);
  f.note = make("p", { className: "caption" }, note);
  return f;
}

// Lines is a plot of columns over the first one.
export class Lines {
  // lines: {label, colour, dash, points}; options: {title, note, x, log}
  constructor(parent, options, lines) {
    this.options = options;
    this.lines = lines;
    this.data = [[], ...lines.map(() => [])];
    this.figure = figureOf(parent, options.title, options.note || "", () => [[options.x, ...this.lines.map(l => l.label)], this.data[0].map((_, i) => this.data.map(c => c[i]))]);
    this.box = make("div");
    this.figure.append(this.box, this.figure.note);
    follow(this, this.figure);
  }
  set(data, lines) {
    this.data = data;
    if (lines) { this.lines = lines; this.plot?.destroy(); this.plot = null; }
    redraw(this);
  }
  draw() {
    const width = this.box.clientWidth;
    if (!width) return;
    const data = this.options.log ? this.data.map((c, k) => k ? c.map(v => v > 0 ? v : null) : c) : this.data;
    if (!this.plot) this.build(width, data);
    else {
      if (this.plot.width !== width) this.plot.setSize({ width, height: this.height(width) });
      this.plot.setData(data);
    }
  }
  height(width) { return Math.round(Math.min(280, Math.max(190, width * 0.5))); }
  build(width, data) {
    const axis = { stroke: () => colour("soft"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { stroke: () => colour("grid"), width: 1 }, font: "12px system-ui, sans-serif" };
    const log = this.options.log;
    this.plot = new uPlot({
      width, height: this.height(width), cursor: { y: false, drag: { x: false, y: false } }, legend: { live: true },
      scales: {
        x: { time: false, range: (_, lo, hi) => lo == null ? [0, 10] : lo === hi ? [lo - 1, hi + 1] : [lo, hi] },
        y: log ? { distr: 3, range: (_, lo, hi) => lo == null || !(lo > 0) ? [1e-3, 1] : decades(lo, hi) } : { range: (_, lo, hi) => around(lo, hi, this.options.from) },
      },
      axes: [
        { ...axis, size: 34, values: (_, ticks) => ticks.map(v => Number.isInteger(v) ? v : "") },
        { ...axis, size: 62, splits: log ? (_, __, lo, hi) => powers(lo, hi) : undefined, filter: (_, splits) => splits, values: (_, at) => at.map(v => number(v, 3)) },
      ],
      series: [
        { label: this.options.x, value: (_, v) => v ?? "" },
        ...this.lines.map(l => ({
          label: l.label, stroke: () => colour(l.colour), width: l.points ? 0 : 2, dash: l.dash ? [6, 4] : undefined, spanGaps: true,
          points: l.points ? { show: true, size: 6, width: 1.5, fill: () => colour("back"), stroke: () => colour(l.colour) } : { show: false },
          paths: l.points ? () => null : undefined, value: (_, v) => number(v, 3),
        })),
      ],
    }, data, this.box);
  }
}
function decades(lo, hi) {
  lo = Math.floor(Math.log10(lo) + 1e-9);
  hi = Math.ceil(Math.log10(hi) - 1e-9);
  return [10 ** lo, 10 ** Math.max(hi, lo + 1)];
}
function powers(lo, hi) {
  const from = Math.round(Math.log10(lo)), to = Math.round(Math.log10(hi)), step = Math.ceil((to - from) / 6), out = [];
  for (let k = from; k <= to; k += step) out.push(10 ** k);
  return out;
}
function around(lo, hi, from) {
  if (lo == null) return [0, 1];
  const low = from ?? lo, room = (hi - low || Math.abs(hi) || 1) * 0.05;
  return [from == null ? lo - room : from, hi + room];
}

// context prepares a canvas of so many CSS pixels.
export function context(canvas, height) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; canvas.style.height = height + "px"; }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "12px system-ui, sans-serif";
  return [g, width, height];
}

// viridis at t from 0 to 1: a table of nine colours, and lines between them.
const stops = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
export function viridis(t) {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2), f = at - k;
  return "rgb(" + stops[k].map((v, i) => Math.round(v + f * (stops[k + 1][i] - v))).join(",") + ")";
}

// ask is fetch that throws what the server says.
export async function ask(path, options) {
  const r = await fetch(path, options).catch(e => { throw e.name === "AbortError" ? e : new Error("The server does not answer."); });
  if (!r.ok) throw new Error((await r.text()).trim() || r.statusText);
  return r;
}

// ticks are round numbers between lo and hi, five or so.
export function ticks(lo, hi) {
  const raw = (hi - lo) / 5, unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(k => k * unit).find(s => s >= raw);
  const out = [];
  for (let k = Math.ceil(lo / step); k * step <= hi + 1e-9 * step; k++) out.push(+(k * step).toPrecision(12));
  return out;
}
