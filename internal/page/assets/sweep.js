// A sweep: how far it is, by whom, what failed, and the table so far as a map.
import { $, make, colour, doubles, number, address, redraw, follow, figureOf, context, viridis, ask } from "./common.js";

const parameters = ["density", "alpha", "p", "noise_var", "n", "s_lo", "s_hi", "seed", "algorithm"];

export class Sweep {
  constructor(name) {
    $("sweep-name").textContent = name;
    this.chosen = make("div", { className: "fields" });
    $("sweep-map").append(this.chosen);
    this.figure = figureOf($("sweep-map"), "Table so far", "", () => [[...parameters, ...this.measures()], Array.from(this.table.alpha, (_, k) => [...parameters, ...this.measures()].map(c => this.table[c]?.[k]))]);
    this.canvas = make("canvas", { className: "map", role: "img", ariaLabel: "the table so far" });
    this.figure.append(this.canvas, this.figure.note);
    follow(this, this.figure);
  }
  show() { this.hide(); this.poll(); }
  hide() { clearTimeout(this.timer); this.asking?.abort(); this.asking = null; }

  async poll() {
    const asking = this.asking = new AbortController();
    try {
      const s = await (await ask("api/sweep", { signal: asking.signal })).json();
      this.take(s);
    } catch (e) { if (e.name !== "AbortError") $("sweep-text").textContent = e.message; }
    if (this.asking === asking) this.timer = setTimeout(() => this.poll(), 3000);
  }
  take(s) {
    this.state = s;
    this.table = Object.fromEntries(Object.entries(s.table).map(([name, text]) => [name, doubles(text)]));
    const words = [`${s.done} of ${s.points} points`];
    if (s.failed) words.push(`${s.failed} failed (${Object.entries(s.classes).map(([c, n]) => `${c} ${n}`).join(", ")})`);
    if (s.rate && s.done < s.points) words.push(`${number(s.rate, 3)} a second, about ${time(s.left_s)} left`);
    if (s.damaged) words.push(`${s.damaged} unfinished lines passed over`);
    $("sweep-text").textContent = s.error || words.join("; ") + ".";
    $("sweep-progress").max = Math.max(1, s.points);
    $("sweep-progress").value = s.done;
    $("sweep-tables").replaceChildren(
      table("Who", ["host", "points", "time"], s.hosts.map(h => [h.name, h.done, time(h.wall_s)])),
      ...(s.failures.length ? [table("Failures", ["point", "class", "message"], s.failures.map(f => [f.point, f.class, f.message]), true)] : []));
    this.choices();
    redraw(this);
  }
  measures() { return Object.keys(this.table).filter(c => !parameters.includes(c)).sort(); }
  // choices are the axes and the colour; what has one value is no axis.
  choices() {
    const varied = parameters.filter(c => new Set(this.table[c]).size > 1), measures = this.measures();
    const columns = varied.join() + measures.join();
    if (this.columns === columns) return;
    this.columns = columns;
    const pick = (name, text, list, otherwise) => {
      const select = make("select", { onchange: () => { address.set({ [name]: select.value }); redraw(this); } }, ...list.map(v => make("option", { value: v }, v.replaceAll("_", " "))));
      select.value = list.includes(address.get(name)) ? address.get(name) : otherwise;
      this[name] = select;
      return make("label", {}, text + " ", select);
    };
    const prefer = (list, ...names) => names.find(n => list.includes(n)) || list[0] || "";
    const x = prefer(varied, "density", "p", "alpha"), y = prefer(varied.filter(v => v !== x), "alpha", "p", "noise_var");
    this.chosen.replaceChildren(pick("x", "across", varied, x), pick("y", "up", varied, y), pick("colour", "colour", measures, prefer(measures, "x_mse_scaled", "x_mse", "se_x_mse", "alpha_cal", "iterations")));
  }

  draw() {
    const width = this.canvas.clientWidth;
    if (!this.table || !width || !this.x?.value) return;
    const xs = this.table[this.x.value], ys = this.table[this.y.value] || new Float64Array(xs.length), zs = this.table[this.colour.value] || [];
    const across = [...new Set(xs)].sort((a, b) => a - b), up = [...new Set(ys)].sort((a, b) => a - b);
    const height = Math.round(Math.min(460, Math.max(260, width * 0.5)));
    const [g] = context(this.canvas, height), left = 64, right = width - 76, top = 10, bottom = height - 40;
    const cw = (right - left) / across.length, ch = (bottom - top) / up.length;
    const column = new Map(across.map((v, k) => [v, k])), row = new Map(up.map((v, k) => [v, k]));
    const sums = new Map();
    let planned = new Set();
    for (let k = 0; k < xs.length; k++) {
      const at = column.get(xs[k]) + across.length * row.get(ys[k]);
      planned.add(at);
      if (this.table.failed?.[k] === 1) { const s = sums.get(at) || { all: [], failed: 0 }; s.failed++; sums.set(at, s); }
      if (!(zs[k] != null && isFinite(zs[k]))) continue;
      const s = sums.get(at) || { all: [], failed: 0 };
      s.all.push(zs[k]);
      sums.set(at, s);
    }
    // The median of seeds, and of what else falls into a cell.
    const medians = new Map();
    for (const [at, s] of sums) { s.all.sort((a, b) => a - b); if (s.all.length) medians.set(at, s.all[Math.floor(s.all.length / 2)]); }
    let lo = Infinity, hi = -Infinity;
    for (const v of medians.values()) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
    const log = lo > 0 && hi / lo > 30, scale = v => log ? Math.log(v / lo) / Math.log(hi / lo) : hi > lo ? (v - lo) / (hi - lo) : 0.5;
    for (const at of planned) {
      const px = left + at % across.length * cw, py = bottom - (Math.floor(at / across.length) + 1) * ch, v = medians.get(at);
      g.fillStyle = v === undefined ? colour("panel") : viridis(1 - scale(v));
      g.fillRect(px, py, cw + 0.5, ch + 0.5);
      if (sums.get(at)?.failed) { g.strokeStyle = colour("bad"); g.lineWidth = 2; g.beginPath(); g.moveTo(px + 3, py + 3); g.lineTo(px + cw - 3, py + ch - 3); g.stroke(); }
    }
    g.fillStyle = colour("soft");
    const label = (list, size, each) => { const every = Math.ceil(list.length * size); list.forEach((v, k) => { if (k % every === 0) each(number(v, 3), k); }); };
    g.textAlign = "center"; g.textBaseline = "top";
    label(across, 46 / (right - left), (t, k) => g.fillText(t, left + (k + 0.5) * cw, bottom + 5));
    g.fillText(this.x.value.replaceAll("_", " "), (left + right) / 2, bottom + 22);
    g.textAlign = "right"; g.textBaseline = "middle";
    label(up, 18 / (bottom - top), (t, k) => g.fillText(t, left - 6, bottom - (k + 0.5) * ch));
    if (hi >= lo) {
      for (let k = 0; k < 64; k++) { g.fillStyle = viridis(1 - k / 63); g.fillRect(right + 12, bottom - (k + 1) / 64 * (bottom - top), 12, (bottom - top) / 64 + 0.6); }
      g.fillStyle = colour("soft"); g.textAlign = "left";
      for (const t of [0, 0.5, 1]) g.fillText(number(log ? lo * (hi / lo) ** t : lo + t * (hi - lo), 2), right + 28, bottom - 6 - t * (bottom - top - 12));
    }
    this.figure.note.textContent = `${this.colour.value.replaceAll("_", " ")}, ${this.y.value.replaceAll("_", " ")} up; the median where several points fall into a cell. Grey cells are not done; a red stroke is a failure.`;
  }
  key() { return false; }
}

function time(s) {
  if (!(s >= 0)) return "–";
  if (s < 60) return number(s, 2) + " s";
  if (s < 3600) return Math.round(s / 60) + " min";
  return number(s / 3600, 3) + " h";
}

function table(heading, columns, rows, words) {
  const cells = (tag, list) => list.map((v, k) => make(k || tag === "th" ? tag : "th", tag === "th" ? { scope: "col" } : k ? {} : { scope: "row" }, String(v)));
  return make("div", { className: "table" + (words ? " words" : "") }, make("h3", {}, heading), make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: heading },
    make("table", {}, make("thead", {}, make("tr", {}, ...cells("th", columns))), make("tbody", {}, ...rows.map(r => make("tr", {}, ...cells("td", r)))))));
}
