"use strict";
(() => {
  const ROWS = 100;
  const KINDS = ["whole characters", "partial UTF-8", "single byte", "byte fallback", "special"];
  const MARK = /(␣|⏎|␍|⇥|⟨[^⟩]*⟩)/;
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("token-data").textContent);
  const body = byId("token-table").tBodies[0];
  const state = { key: "id", direction: 1, page: 0, found: [] };
  const sorted = new Map();
  let folded = null;

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
    const unseen = byId("token-unseen").checked;
    state.found = order().filter(
      (row) => (!kind || data.kinds[row] === kind) && (!unseen || data.sample[row] === 0) && matches(row),
    );
    state.page = 0;
    show();
  }

  function cell(row, text, className) {
    const added = row.insertCell();
    added.className = className;
    added.textContent = text;
    return added;
  }

  function tokenCell(row, text) {
    const isolated = document.createElement("bdi");
    for (const run of text.split(MARK)) {
      const part = document.createElement(MARK.test(run) ? "i" : "span");
      part.textContent = run;
      isolated.append(part);
    }
    cell(row, "", "token").append(isolated);
  }

  function show() {
    const pages = Math.max(1, Math.ceil(state.found.length / ROWS));
    body.replaceChildren();
    for (const token of state.found.subarray(state.page * ROWS, (state.page + 1) * ROWS)) {
      const row = body.insertRow();
      cell(row, String(data.id[token]), "number");
      tokenCell(row, data.tokens[token]);
      cell(row, KINDS[data.kinds[token]], "");
      cell(row, data.sample[token].toLocaleString("en"), "number");
      cell(row, data.test[token].toLocaleString("en"), "number");
    }
    body.closest(".scroll").scrollTop = 0;
    byId("token-found").textContent = `${state.found.length.toLocaleString("en")} found`;
    byId("token-page").textContent = `page ${state.page + 1} of ${pages.toLocaleString("en")}`;
    byId("token-back").disabled = state.page === 0;
    byId("token-next").disabled = state.page + 1 >= pages;
    for (const button of document.querySelectorAll("#token-table th button")) {
      const chosen = button.dataset.key === state.key;
      button.dataset.sorted = chosen ? (state.direction > 0 ? "up" : "down") : "";
    }
  }

  function turn(pages) {
    state.page += pages;
    show();
  }

  function sortBy(key) {
    const again = state.key === key;
    state.direction = again ? -state.direction : key === "id" ? 1 : -1;
    state.key = key;
    select();
  }

  byId("token-search").addEventListener("input", select);
  byId("token-kind").addEventListener("change", select);
  byId("token-unseen").addEventListener("change", select);
  byId("token-back").addEventListener("click", () => turn(-1));
  byId("token-next").addEventListener("click", () => turn(1));
  for (const button of document.querySelectorAll("#token-table th button")) {
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
