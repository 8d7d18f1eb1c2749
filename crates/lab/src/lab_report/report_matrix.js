"use strict";
// The matrix and what is behind a cell. Needs report_words.js.

const marksOf = cell => page.colours[cell.colour].mark + (cell.bound === "client" ? "c" : "");

function cellClasses(cell) {
  const hatched = cell.bound === "client" && fewFailed(cell) ? " hatched" : "";
  return "cell " + cell.colour + hatched;
}

// The words for those who do not see the cell.
function cellSentence(cell) {
  const colour = page.colours[cell.colour].words;
  const bound = cell.colour === "white" ? "" : ", " + page.bounds[cell.bound];
  return `${cell.server}, ${cell.row}: ${colour}${bound}. ${cell.why.join(" ")}`;
}

function cellButton(cell, choose) {
  const button = make("button", cellClasses(cell));
  button.type = "button";
  // The matrix is one stop of the tabulator's, at the cell where one was last; see moveInMatrix.
  button.tabIndex = -1;
  button.title = cellSentence(cell);
  button.setAttribute("aria-pressed", "false");
  if (cell.colour === "white") {
    button.append(make("span", "marks", "–"), make("small", "", "not run: " + (cell.why[0] || "no reason given")));
  } else {
    const places = placesOf(cell);
    const place = number => number ? make("span", "place", " #" + number) : null;
    const held = cell.bytes_per_connection;
    const goodput = orDash(cell.goodput_per_second?.median, perSecond);
    // In brackets: it is what was counted, and ranks nobody.
    const counted = cell.ranks_throughput ? goodput : make("span", "unranked", "(" + goodput + ")");
    button.append(
      make("span", "marks", marksOf(cell)),
      ...(held ? [bytes(held.median) + " each", place(places.bytes_per_connection) || ""] : [counted, place(places.goodput) || ""]),
      make("small", "", orDash(cell.p50_micros?.median, micros), " / ", orDash(cell.p99_micros?.median, micros), place(places.p99)),
      held ? "" : make("small", "", orDash(cell.server_micros_per_answer?.median, cpuMicros), " CPU", place(places.server_micros_per_answer)));
  }
  button.addEventListener("click", () => choose(cell, button));
  return button;
}

function drawMatrix(chosen) {
  const head = serversInIt.map(server => {
    const th = make("th", "", server.name, make("div", "dim", server.twin_of ? "copy, for the noise" : server.version));
    th.scope = "col";
    return th;
  });
  let pressed = null;
  const choose = (cell, button) => {
    if (pressed) pressed.setAttribute("aria-pressed", "false");
    const again = pressed === button;
    pressed = again ? null : button;
    if (!again) button.setAttribute("aria-pressed", "true");
    find("details").replaceChildren(...(again ? [] : [cellDetails(cell)]));
    if (!again) chosen(cell);
  };
  const rows = results.rows.map(row => {
    const th = make("th", "", row.name);
    th.scope = "row";
    th.title = row.load;
    return make("tr", "", th, serversInIt.map(server => {
      const cell = cellAt(server.name, row.name);
      return make("td", "", cell ? cellButton(cell, choose) : null);
    }));
  });
  const matrix = make("table", "matrix", make("thead", "", make("tr", "", make("th"), head)), make("tbody", "", rows));
  matrix.addEventListener("keydown", moveInMatrix);
  matrix.addEventListener("focusin", event => stopAt(matrix, event.target.closest("button.cell")));
  stopAt(matrix, matrix.querySelector("button.cell"));
  find("matrix-table").replaceChildren(matrix);
  drawLegend();
}

function stopAt(matrix, button) {
  if (!button) return;
  for (const other of matrix.querySelectorAll("button.cell[tabindex='0']")) other.tabIndex = -1;
  button.tabIndex = 0;
}

// The way through the table, by arrow keys: a tabulator that stopped at every cell would be hundreds of strokes.
function moveInMatrix(event) {
  const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] || [0, 0];
  const td = event.target.closest("td");
  if (!td || (!down && !right)) return;
  const next = event.currentTarget.rows[td.parentElement.rowIndex + down]?.cells[td.cellIndex + right]?.querySelector("button");
  if (next) {
    event.preventDefault();
    next.focus();
  }
}

function drawLegend() {
  const entry = (className, mark, words) => make("li", "", make("span", "swatch " + className, mark), words);
  const colours = Object.entries(page.colours).map(([name, { mark, words }]) => entry(name, mark, words));
  const hatched = entry("hatched", "c", "client-bound: ranks no throughput, only CPU and latency at a fixed rate");
  find("matrix-legend").replaceChildren(...colours, hatched);
}

function cellDetails(cell) {
  const row = rowNamed(cell.row);
  const panel = make("div", "panel", make("h3", "", `${cell.server} · ${cell.row}`),
    make("p", "", `${page.colours[cell.colour].words}; ${page.bounds[cell.bound]}; `,
      cell.steady === false ? "not steady; " : "",
      cell.comparable_in.length ? "ranks in " + cell.comparable_in.map(metric => METRICS[metric].name).join(", ") : "ranks in nothing",
      row ? ` · ${row.load}` : ""),
    cell.gate ? make("p", "dim", `Compared byte by byte before the load (URLs: ${count(cell.gate.urls)}, together ${bytes(cell.gate.bytes)}): `,
      cell.gate.bad.length ? cell.gate.bad.join("; ") : "all were right.") : null,
    cell.why.length ? make("ul", "", cell.why.map(why => make("li", "", why))) : null);
  const estimates = Object.values(METRICS).filter(metric => metric.of(cell)).map(metric => {
    const { median, low, high, min, max } = metric.of(cell);
    return [metric.name, ...[median, low, high, min, max].map(value => ({ number: metric.words(value) }))];
  });
  if (estimates.length) {
    panel.append(scroller("figures", table("", ["", { number: "median" }, { number: "95 % from" }, { number: "to" },
      { number: "least" }, { number: "most" }], estimates)));
  }
  const errors = Object.entries(cell.errors);
  if (errors.length) {
    const rows = errors.map(([kind, seen]) => [kind, { number: count(seen.count) }, { number: seconds(seen.first_seconds) },
      { number: seconds(seen.last_seconds) }, make("code", "sample", seen.sample)]);
    panel.append(make("h4", "", "Errors"), scroller("errors",
      table("", ["kind", { number: "count" }, { number: "first" }, { number: "last" }, "a sample"], rows)));
  }
  if (cell.blocks.length) panel.append(make("h4", "", "Blocks"), scroller("blocks", blocksTable(cell)));
  return panel;
}

function blocksTable(cell) {
  const columns = [
    ["block", b => b.block + (b.restarted ? " R" : "") + (b.server_died ? " died" : "")], ["at", b => seconds(b.at_seconds)],
    ["good", b => count(b.good)], ["failed", b => count(b.failed)], ["goodput", b => perSecond(b.good / b.elapsed_seconds)],
    ["CPU", b => b.good ? cpuMicros(b.server.cpu_seconds * 1e6 / b.good) : "–"], ["p50", b => orDash(b.p50_micros, micros)],
    ["p99", b => orDash(b.p99_micros, micros)], ["max", b => orDash(b.max_micros, micros)],
    ["client busy", b => share(b.client_busy_share)], ["server busy", b => share(b.server.busy_share)],
    ["user", b => seconds(b.server.user_seconds)], ["system", b => seconds(b.server.system_seconds)],
    ["PSS", b => bytes(b.server.pss_bytes)], ["fds", b => count(b.server.fds)], ["threads", b => count(b.server.threads)],
    ["switches", b => count(b.server.voluntary_switches) + " + " + count(b.server.involuntary_switches)],
    ["sent late, p99", b => orDash(b.send_lag_p99_micros, micros)], ["connections", b => count(b.connections_opened)],
    ["at the origin", b => orDash(b.origin_requests, count)], ["origin busy", b => orDash(b.origin_busy_share, share)],
    ["held", b => b.held ? `${count(b.held.alive)} of ${count(b.held.asked)}` : "–"],
  ];
  return table("", columns.map(([name]) => ({ number: name })),
    cell.blocks.map(block => columns.map(([, words]) => ({ number: words(block) }))));
}
