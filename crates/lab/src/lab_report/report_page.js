"use strict";
// The page as a whole: who draws what when, the theme, and what stands in plain text. Needs the other scripts.

function drawHeader() {
  find("title").textContent = results.title;
  find("about").textContent = results.about;
  const parts = [
    results.begun, `${(results.elapsed_seconds / 60).toFixed(0)} min`, `${serversInIt.length} servers × ${results.rows.length} rows`,
    `${results.method.blocks} blocks of ${seconds(results.method.slice_seconds)}`, results.smoke ? "smoke run" : "", results.interrupted ? "interrupted" : "",
  ];
  find("summary").textContent = parts.filter(Boolean).join(" · ");
  find("sentences").replaceChildren(...page.sentences.map(sentence => make("li", "", sentence)));
  if (!page.sentences.length) find("sentences").replaceChildren(make("li", "dim", "No two cells were compared."));
}

function drawNoise() {
  const rows = results.noise.map(one => [METRICS[one.metric].name, one.row,
    { number: changeWithInterval(one.ratio) }, { number: share(one.gap) }]);
  const words = make("p", "", "Nothing stood twice in this run: nobody knows its noise, so no difference here is proven.");
  find("noise-table").replaceChildren(rows.length
    ? table("", ["metric", "row", { number: "ratio of the two" }, { number: "noise" }], rows) : words);
}

function drawWarnings() {
  const words = results.warnings.length ? results.warnings : ["none"];
  find("warning-list").replaceChildren(...words.map(warning => make("li", "", warning)));
  const skipped = results.servers.filter(server => server.skipped).map(server => [server.name, "all rows", server.skipped]);
  const isSkipped = name => results.servers.some(server => server.name === name && server.skipped);
  const white = results.cells.filter(cell => cell.colour === "white" && !isSkipped(cell.server))
    .map(cell => [cell.server, cell.row, cell.why.join(" ")]);
  const rows = [...skipped, ...white];
  find("excluded").replaceChildren(rows.length ? table("", ["server", "not run", "why"], rows) : make("p", "dim", "Every cell was run."));
}

function drawConditions() {
  const { machine, method } = results;
  find("repeat").textContent = results.repeat;
  find("machine").replaceChildren(make("h3", "", "Machine"), definitions([
    ["CPU", machine.cpu_model], ["CPUs", machine.cpus], ["memory", bytes(machine.memory_bytes)], ["kernel", machine.kernel],
    ["open files, at most", count(machine.open_files_max)], ["load before", significant(machine.load_before)],
    ["load after", significant(machine.load_after)], ["stolen by other guests", share(machine.steal_share)],
    ...Object.entries(machine.settings),
  ]));
  find("method").replaceChildren(make("h3", "", "Method"), definitions([
    ["blocks", method.blocks], ["slice", seconds(method.slice_seconds)], ["warm-up, at most", seconds(method.warm_seconds_max)],
    ["restarted", method.restart_every ? `before every ${method.restart_every}. block` : "never"], ["seed", method.seed],
    ["client on CPUs", method.client_cpus.join(", ")], ["server on CPUs", method.server_cpus.join(", ")],
    ["client threads", method.client_threads], ["compared with", method.reference], ["begun", results.begun],
    ["noise", results.noise.map(one => `${METRICS[one.metric].name} ${share(one.gap)}`).join(", ") || "not measured"],
  ]));
  find("servers").replaceChildren(...[...results.servers, results.origin].filter(Boolean).map(serverDetails));
  find("loads").replaceChildren(table("", ["row", "load", { number: "most our client can" }],
    results.rows.map(row => [row.name, row.load, { number: orDash(row.null_ceiling_per_second, perSecond) }])));
  find("lab-file").replaceChildren(folded(results.lab_file.name || "lab file", make("pre", "", results.lab_file.text)));
  find("colophon").textContent = `${results.format}. Charts: uPlot (MIT). This file is whole: it loads nothing and sends nothing.`;
}

// As a shell would take it, so that it can be pasted.
const shellWord = word => /^[\w@%+=:,.\/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

function serverDetails(server) {
  const facts = definitions([
    ["version", server.version], ["profile", server.profile], ["sha256 of the binary", server.binary_sha256 ? make("code", "", server.binary_sha256) : ""],
    ["second copy of", server.twin_of], ["not run", server.skipped],
    ["command", server.command.length ? make("code", "", server.command.map(shellWord).join(" ")) : ""],
  ]);
  const configs = server.configs.map(config => [make("h4", "", config.name), make("pre", "", config.text)]);
  const behind = server.behind ? [make("h4", "", "behind it, and counted with it"), serverDetails(server.behind)] : [];
  return folded(`${server.name}: ${server.version || server.skipped || ""}`, facts, configs, behind);
}

// ---- Choices

const choices = { row: results.rows[0]?.name, metric: "server-micros-per-answer" };

function fillChoices() {
  for (const select of document.querySelectorAll("[data-choose=row]")) {
    select.replaceChildren(...results.rows.map(row => new Option(row.name, row.name)));
    select.addEventListener("change", () => chooseRow(select.value));
  }
  const metrics = find("choose-metric");
  metrics.replaceChildren(...Object.entries(METRICS).map(([key, metric]) => new Option(metric.name, key)));
  metrics.value = choices.metric;
  metrics.addEventListener("change", () => {
    choices.metric = metrics.value;
    drawDifferences(choices.metric);
  });
}

function chooseRow(name) {
  choices.row = name;
  for (const select of document.querySelectorAll("[data-choose=row]")) select.value = name;
  drawPercentiles(name);
  drawOverTime(name);
}

// ---- Theme: as the system has it, until somebody chooses; `#dark` and `#light` choose in the address.

const systemDark = matchMedia("(prefers-color-scheme: dark)");
let themeChosen = { "#dark": "dark", "#light": "light" }[location.hash] || null;

function applyTheme() {
  const theme = themeChosen || (systemDark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  find("theme").textContent = theme === "dark" ? "light page" : "dark page";
  drawColoured();
}

// What takes colours from the style sheet at the moment it is drawn.
function drawColoured() {
  drawServerLegends();
  drawCurves();
  drawDifferences(choices.metric);
  if (choices.row !== undefined) chooseRow(choices.row);
}

drawHeader();
drawMatrix(cell => chooseRow(cell.row));
drawNoise();
drawWarnings();
drawConditions();
fillChoices();
applyTheme();
find("theme").addEventListener("click", () => {
  themeChosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  applyTheme();
});
systemDark.addEventListener("change", applyTheme);
let resizing = 0;
let width = document.documentElement.clientWidth;
addEventListener("resize", () => {
  // A phone's address bar changes the height all the time.
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  clearTimeout(resizing);
  resizing = setTimeout(drawColoured, 150);
});
