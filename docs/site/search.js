// Search of the site: sections that have all words, those with the words in their titles first.
"use strict";
(() => {
  const up = document.currentScript.dataset.up;
  const box = document.getElementById("search"), list = document.getElementById("found");
  box.hidden = false;
  const input = box.querySelector("input");

  // The index is loaded when it is first needed.
  let loading = null;
  const load = () => loading ??= new Promise((done, failed) => {
    const s = document.createElement("script");
    s.src = up + "search-index.js";
    s.onload = () => done(searchIndex.map(e => ({ ...e, page: fold(e.p), section: fold(e.s), text: fold(e.t) })));
    s.onerror = failed;
    document.head.append(s);
  });

  // fold keeps the length of a text, so that places in one are places in the other.
  const fold = s => Array.from(s, c => { const l = c.toLowerCase(); return l.length === c.length ? l : c; }).join("");
  const letter = /[\p{L}\p{N}]/u;

  // at is the first place where a word of the text begins with w, or -1.
  const at = (text, w) => {
    for (let i = text.indexOf(w); i >= 0; i = text.indexOf(w, i + 1))
      if (i === 0 || !letter.test(w[0]) || !letter.test(text[i - 1])) return i;
    return -1;
  };

  const score = (e, words) => {
    let sum = 0;
    for (const w of words) {
      const s = (at(e.page, w) >= 0 ? 8 : 0) + (at(e.section, w) >= 0 ? 10 : 0) + (at(e.text, w) >= 0 ? 1 : 0);
      if (s === 0) return 0;
      sum += s;
    }
    return sum + (at(e.text, words.join(" ")) >= 0 ? 2 : 0);
  };

  // excerpt is the text about the first word that is found in it, with the words marked.
  const excerpt = (e, words) => {
    const first = Math.min(...words.map(w => at(e.text, w)).filter(i => i >= 0), e.t.length);
    let from = first >= e.t.length || first < 60 ? 0 : e.t.indexOf(" ", first - 60) + 1;
    const to = from + 160, p = document.createElement("p");
    if (from > 0) p.append("… ");
    while (from < to && from < e.t.length) {
      const next = words.map(w => [at(e.text.slice(from, to), w), w.length]).filter(([i]) => i >= 0).sort(([a], [b]) => a - b)[0];
      if (!next) break;
      const mark = document.createElement("mark");
      mark.textContent = e.t.slice(from + next[0], from + next[0] + next[1]);
      p.append(e.t.slice(from, from + next[0]), mark);
      from += next[0] + next[1];
    }
    if (from < to) p.append(e.t.slice(from, to));
    if (to < e.t.length) p.append(" …");
    return p;
  };

  const show = async () => {
    const asked = input.value, words = fold(asked).split(/\s+/).filter(Boolean);
    if (words.length === 0) { list.hidden = true; return; }
    const index = await load();
    if (input.value !== asked) return;
    const found = index.map(e => [score(e, words), e]).filter(([s]) => s > 0).sort(([a], [b]) => b - a).slice(0, 12);
    list.replaceChildren(...found.map(([, e]) => {
      const item = document.createElement("li"), a = document.createElement("a"), strong = document.createElement("strong");
      a.href = up + e.a;
      strong.textContent = e.s ? `${e.p}: ${e.s}` : e.p;
      a.append(strong, excerpt(e, words));
      item.append(a);
      return item;
    }));
    if (found.length === 0) list.append(Object.assign(document.createElement("li"), { textContent: "No section has all of these words." }));
    list.hidden = false;
  };

  input.addEventListener("focus", load);
  input.addEventListener("input", show);
  box.addEventListener("submit", event => { event.preventDefault(); show().then(() => list.querySelector("a")?.click()); });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") { list.hidden = true; input.blur(); }
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); input.focus(); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp" || list.hidden) return;
    const links = [...list.querySelectorAll("a")], now = links.indexOf(document.activeElement);
    if (now < 0 && document.activeElement !== input) return;
    event.preventDefault();
    (links[now + (event.key === "ArrowDown" ? 1 : -1)] ?? input).focus();
  });
  document.addEventListener("click", event => { if (!box.contains(event.target)) list.hidden = true; });
})();
