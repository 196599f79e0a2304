"use strict";
(() => {
  const HEIGHT = 32;
  const SPARE = 12;
  const KINDS = ["whole characters", "partial UTF-8", "single byte", "byte fallback", "special"];
  const MARK = /(␣|⏎|␍|⇥|⟨[^⟩]*⟩)/;
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("token-data").textContent);
  const viewport = byId("token-rows");
  const space = byId("token-space");
  const state = { key: "id", direction: 1, found: [] };
  const sorted = new Map();
  let folded = null;
  let drawn = [-1, -1];

  function options(select, names, values) {
    for (const value of values) {
      const option = document.createElement("option");
      option.value = String(value);
      option.textContent = names[value].replace("_", " ");
      select.append(option);
    }
  }
  options(byId("token-script"), data.scriptNames, [...new Set(data.scripts)].sort((a, b) => a - b));
  options(byId("token-mark"), data.markNames, data.markNames.keys());

  // Rows of the data by the chosen column, ties by id; each order is worked out once.
  function order() {
    const name = state.key + state.direction;
    if (!sorted.has(name)) {
      const column = data[state.key];
      const rows = Uint32Array.from(data.tokens, (_, row) => row);
      sorted.set(name, rows.sort((a, b) => state.direction * (column[a] - column[b]) || a - b));
    }
    return sorted.get(name);
  }

  function matcher(query) {
    const id = /^#(\d+)$/.exec(query);
    if (id) return (row) => data.id[row] === Number(id[1]);
    if (!query) return () => true;
    folded ??= data.tokens.map((token) => token.toLowerCase());
    const part = query.replace(/\\n/g, "⏎").replace(/\\r/g, "␍").replace(/\\t/g, "⇥").replace(/ /g, "␣").toLowerCase();
    return (row) => folded[row].includes(part);
  }

  function select() {
    const matches = matcher(byId("token-search").value);
    const kind = byId("token-kind").value;
    const script = byId("token-script").value;
    const mark = byId("token-mark").value;
    const bit = mark === "" ? 0 : 1 << Number(mark);
    const unseen = byId("token-unseen").checked;
    state.found = order().filter(
      (row) =>
        (!kind || data.kinds[row] === kind) &&
        (script === "" || data.scripts[row] === Number(script)) &&
        (!bit || data.marks[row] & bit) &&
        (!unseen || data.sample[row] === 0) &&
        matches(row),
    );
    space.style.height = `${state.found.length * HEIGHT}px`;
    viewport.scrollTop = 0;
    drawn = [-1, -1];
    draw();
    byId("token-found").textContent = `${state.found.length.toLocaleString("en")} found`;
    for (const button of document.querySelectorAll(".grid-head button")) {
      const chosen = button.dataset.key === state.key;
      button.dataset.sorted = chosen ? (state.direction > 0 ? "up" : "down") : "";
    }
  }

  function cell(row, text, className) {
    const added = document.createElement("span");
    added.setAttribute("role", "cell");
    added.className = className;
    added.textContent = text;
    row.append(added);
    return added;
  }

  function tokenCell(row, text) {
    const isolated = document.createElement("bdi");
    for (const run of text.split(MARK)) {
      const part = document.createElement(MARK.test(run) ? "i" : "span");
      part.textContent = run;
      isolated.append(part);
    }
    const added = cell(row, "", "token");
    added.title = text;
    added.append(isolated);
  }

  function tokenRow(place) {
    const token = state.found[place];
    const row = document.createElement("div");
    row.setAttribute("role", "row");
    row.className = "grid-row";
    row.style.top = `${place * HEIGHT}px`;
    cell(row, String(data.id[token]), "number");
    tokenCell(row, data.tokens[token]);
    cell(row, KINDS[data.kinds[token]], "soft");
    cell(row, data.scriptNames[data.scripts[token]].replace("_", " "), "soft");
    const marks = cell(row, "", "marks");
    data.markNames.forEach((name, bit) => {
      if (data.marks[token] & (1 << bit)) cell(marks, name, `mark mark-${name}`);
    });
    cell(row, data.sample[token].toLocaleString("en"), "number");
    cell(row, data.test[token].toLocaleString("en"), "number");
    return row;
  }

  // Only the rows in view exist; the space they stand in is as high as all of them.
  function draw() {
    const first = Math.max(0, Math.floor(viewport.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(state.found.length, Math.ceil((viewport.scrollTop + viewport.clientHeight) / HEIGHT) + SPARE);
    if (first === drawn[0] && last === drawn[1]) return;
    drawn = [first, last];
    const rows = [];
    for (let place = first; place < last; place++) rows.push(tokenRow(place));
    space.replaceChildren(...rows);
  }

  function sortBy(key) {
    const again = state.key === key;
    state.direction = again ? -state.direction : key === "id" ? 1 : -1;
    state.key = key;
    select();
  }

  viewport.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  byId("token-search").addEventListener("input", select);
  for (const id of ["token-kind", "token-script", "token-mark", "token-unseen"]) {
    byId(id).addEventListener("change", select);
  }
  for (const button of document.querySelectorAll(".grid-head button")) {
    button.addEventListener("click", () => sortBy(button.dataset.key));
  }
  select();

  // The browser knows the names of languages; codes that it does not know stay alone.
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });
  for (const place of document.querySelectorAll("small[data-lang]")) {
    try {
      place.textContent = names.of(place.dataset.lang) ?? "";
    } catch {
      place.textContent = "";
    }
  }
})();
