"use strict";
// Search over all pages without a server, and the choice between light and dark.
(() => {
  const root = document.currentScript.dataset.root;
  const wide = matchMedia("(min-width: 1081px)");
  const pages = document.getElementById("pages");
  const unfold = () => { pages.open = wide.matches; };
  unfold();
  wide.addEventListener("change", unfold);

  const html = document.documentElement;
  const keep = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* a page from a file may keep nothing */ } };
  try { const kept = localStorage.getItem("theme"); if (kept) html.dataset.theme = kept; } catch { /* likewise */ }
  document.getElementById("theme").addEventListener("click", () => {
    const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    html.dataset.theme = dark ? "light" : "dark";
    keep(html.dataset.theme);
  });

  const field = document.getElementById("search");
  const list = document.getElementById("found");
  let loading;
  const load = () => loading ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = root + "passages.js";
    script.addEventListener("load", () => {
      for (const each of window.passages) each.l = (each.p + " " + each.h + " " + each.t).toLowerCase();
      done();
    });
    document.head.append(script);
  });
  const score = (each, words) => {
    let sum = 0;
    for (const word of words) {
      if (!each.l.includes(word)) return 0;
      sum += 1 + (each.h.toLowerCase().includes(word) ? 6 : 0) + (each.p.toLowerCase().includes(word) ? 3 : 0);
    }
    if (/\/(concepts|howto)\//.test(each.u)) sum += 4;
    return each.u.startsWith("CHANGELOG") || each.u.includes("requirements") ? sum / 4 : sum;
  };
  const show = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { list.hidden = true; return; }
    await load();
    const rows = window.passages.map((each) => [score(each, words), each]).filter(([points]) => points > 0);
    rows.sort(([a], [b]) => b - a);
    list.replaceChildren(...rows.slice(0, 20).map(([, each]) => {
      const item = document.createElement("li"), link = document.createElement("a"), more = document.createElement("small");
      link.href = root + each.u;
      link.textContent = each.h === each.p ? each.p : each.p + " · " + each.h;
      const at = each.t.toLowerCase().indexOf(words[0]);
      more.textContent = each.t.slice(Math.max(0, at - 40), Math.max(0, at - 40) + 160);
      link.append(more);
      item.append(link);
      return item;
    }));
    if (!rows.length) {
      const none = document.createElement("li");
      none.className = "none";
      none.textContent = "Nothing was found.";
      list.append(none);
    }
    list.hidden = false;
  };
  field.addEventListener("input", show);
  field.addEventListener("focus", load);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape") { list.hidden = true; field.blur(); }
    const links = [...list.querySelectorAll("a")], now = links.indexOf(document.activeElement);
    if (!list.hidden && links.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      links[(now + (event.key === "ArrowDown" ? 1 : -1) + links.length) % links.length].focus();
    }
    if (event.key === "Enter" && document.activeElement === field && links.length) links[0].click();
  });
  document.addEventListener("click", (event) => { if (!event.target.closest("search")) list.hidden = true; });
})();
