"use strict";
// Graph views, colors by target, and a table that sorts, searches and folds. Without it the page shows everything.
document.documentElement.classList.add("js");
addEventListener("DOMContentLoaded", () => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const views = all(".view");

  function show() {
    const at = location.hash.slice(1);
    const wanted = views.find((view) => view.id === at);
    if (wanted || !views.some((view) => view.classList.contains("current"))) {
      for (const view of views) view.classList.toggle("current", view === (wanted ?? views[0]));
    }
    const row = /^r\d+$/.test(at) && document.getElementById(at);
    if (row) {
      search.value = "";
      open.set(row.dataset.g, true);
      paint();
      row.scrollIntoView({ block: "center" });
    }
  }

  const target = document.getElementById("target");
  target?.addEventListener("change", () => {
    for (const box of all("[data-c]")) {
      const classes = box.dataset.c.split(" ");
      box.classList.remove(...classes);
      box.classList.add(classes[target.selectedIndex]);
    }
  });

  const table = document.querySelector("table.layers");
  const body = table.tBodies[0];
  const rows = all("tr.layer", body);
  const modules = all("tr.module", body);
  const heads = all("thead th", table);
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const inside = new Map(modules.map((head) => [head.dataset.g, []]));
  for (const row of rows) inside.get(row.dataset.g).push(row);
  const many = rows.length > 60;
  const open = new Map(modules.map((head) => [head.dataset.g, !many || head.dataset.open === "1"]));
  const search = document.getElementById("search");
  const only = document.getElementById("only");
  const count = document.getElementById("count");
  let column = -1;
  let down = false;

  const found = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const left = (row, i) =>
      words.every((word) => texts[i].includes(word)) && (!only.checked || row.dataset.bad === "1");
    return new Set(rows.filter(left));
  };

  function paint() {
    const kept = found();
    const searching = kept.size < rows.length;
    const grouped = column < 0;
    for (const head of modules) {
      const name = head.dataset.g;
      head.hidden = !grouped || !inside.get(name).some((row) => kept.has(row));
      head.querySelector("button").setAttribute("aria-expanded", String(searching || open.get(name)));
    }
    for (const row of rows) row.hidden = !kept.has(row) || (grouped && !searching && !open.get(row.dataset.g));
    count.textContent = searching ? `${kept.size} of ${rows.length} rows` : `${rows.length} rows`;
  }

  function sort(place) {
    // Once: the natural direction, twice: the other one, three times: the order of the graph again.
    const first = heads[place].dataset.down === "1";
    if (column !== place) [column, down] = [place, first];
    else if (down === first) down = !down;
    else column = -1;
    for (const [i, head] of heads.entries()) {
      head.setAttribute("aria-sort", i === column ? (down ? "descending" : "ascending") : "none");
    }
    if (column < 0) {
      body.append(...modules.flatMap((head) => [head, ...inside.get(head.dataset.g)]));
    } else {
      const key = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
      };
      const keys = new Map(rows.map((row) => [row, key(row)]));
      const order = [...rows].sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        const less = typeof x === "number" ? x - y || 0 : x.localeCompare(y, undefined, { numeric: true });
        return down ? -less : less;
      });
      body.append(...order);
    }
    paint();
  }

  for (const [i, head] of heads.entries()) head.querySelector("button").addEventListener("click", () => sort(i));
  for (const head of modules) {
    head.querySelector("button").addEventListener("click", () => {
      open.set(head.dataset.g, !open.get(head.dataset.g));
      paint();
    });
  }
  document.getElementById("fold").addEventListener("click", () => {
    const some = [...open.values()].some((value) => !value);
    for (const name of open.keys()) open.set(name, some);
    paint();
  });
  search.addEventListener("input", paint);
  only.addEventListener("change", paint);
  addEventListener("hashchange", show);
  paint();
  show();
});
