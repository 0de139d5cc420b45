// The page: its views, which are in run.js, theory.js and sweep.js, and the keys. What they share is in common.js.
import { $, make, address, ask } from "./common.js";
import { Run } from "./run.js";
import { Theory } from "./theory.js";
import { Sweep } from "./sweep.js";

const keys = [["1 2 3", "solve, theory, sweep"], ["o", "choose a file"], ["← →", "the sensor before, the next one"], ["s", "sort sensors by something else"], ["x", "cancel the run"], ["r", "theory: run a real instance here"], ["c", "theory: take the runs away"], ["?", "this list"]];

async function start() {
  const about = await (await ask("api/about")).json();
  const stream = about.kind === "stream";
  $("version").textContent = "calamp " + about.version;
  const views = [{ name: "solve", title: stream ? "Stream" : "Solve", shown: new Run(about) }];
  if (!stream) views.push({ name: "theory", title: "Theory", shown: new Theory() });
  if (about.sweep) views.push({ name: "sweep", title: "Sweep", shown: new Sweep(about.sweep) });
  const links = views.map(v => make("a", { href: "#" + v.name }, v.title));
  document.querySelector(".bar nav").append(...links);
  let current = null;
  const go = () => {
    address.read();
    const view = views.find(v => v.name === address.view) || views[0];
    address.view = view.name;
    views.forEach((v, k) => {
      $(v.name).hidden = v !== view;
      if (v === view) links[k].setAttribute("aria-current", "page"); else links[k].removeAttribute("aria-current");
    });
    if (current && current !== view) current.shown.hide();
    current = view;
    document.title = view.title + " · calamp";
    if (!document.hidden) view.shown.show();
  };
  addEventListener("hashchange", go);
  // A hidden page asks for nothing.
  document.addEventListener("visibilitychange", () => document.hidden ? current.shown.hide() : current.shown.show());
  $("keys").append(make("dl", {}, ...keys.flatMap(([k, what]) => [make("dt", {}, ...k.split(" ").flatMap((c, i) => [i ? " " : "", make("kbd", {}, c)])), make("dd", {}, what)])));
  $("keys").onclick = () => $("keys").close();
  $("help").onclick = () => $("keys").showModal();
  addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open && e.key !== "?") return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "range";
    if (typing) return;
    if (e.key === "?") { $("keys").open ? $("keys").close() : $("keys").showModal(); return; }
    const view = views[+e.key - 1];
    if (view) { location.hash = view.name; return; }
    if (current.shown.key(e.key, e.target)) e.preventDefault();
  });
  go();
}
start().catch(e => { document.querySelector("main").prepend(make("p", { className: "verdict bad" }, e.message)); });
