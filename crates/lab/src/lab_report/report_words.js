"use strict";
// What all parts of the page use: the results, making elements, and numbers in words. The numbers read as they do in
// the terminal's table (cell_words.rs).

const page = JSON.parse(document.getElementById("results").textContent);
const results = page.results;

const find = id => document.getElementById(id);

// Everything a server or a config may have written enters the page here, and only as text.
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

function table(className, head, rows) {
  const numeric = cell => typeof cell === "object" && cell !== null && "number" in cell;
  const td = cell => numeric(cell) ? make("td", "number", cell.number) : make("td", "", cell);
  const th = name => {
    const element = make("th", numeric(name) ? "number" : "", numeric(name) ? name.number : name);
    element.scope = "col";
    return element;
  };
  return make("table", className,
    make("thead", "", make("tr", "", head.map(th))),
    make("tbody", "", rows.map(cells => make("tr", "", cells.map(td)))));
}

// What may be wider than the page can be reached, and so scrolled, from the keyboard.
function scroller(name, ...children) {
  const element = make("div", "scroll", children);
  element.tabIndex = 0;
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", name);
  return element;
}

function definitions(pairs) {
  return make("dl", "", pairs.filter(([, value]) => value !== null && value !== "")
    .flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
}

function folded(name, ...content) {
  return make("details", "", make("summary", "", name), content);
}

const isNumber = value => typeof value === "number" && Number.isFinite(value);
const group = digits => digits.replace(/\B(?=(\d{3})+$)/g, ",");

function significant(value) {
  const size = Math.abs(value);
  return size < 0.005 ? "0" : size < 10 ? value.toFixed(2) : size < 100 ? value.toFixed(1) : value.toFixed(0);
}
const perSecond = value => (value >= 100 ? group(value.toFixed(0)) : significant(value)) + "/s";
const micros = value => value < 1e3 ? significant(value) + " µs"
  : value < 1e6 ? significant(value / 1e3) + " ms" : significant(value / 1e6) + " s";
const cpuMicros = value => significant(value) + " µs";
const share = value => significant(value * 100) + " %";
const seconds = value => significant(value) + " s";
const count = value => group(String(value));
function bytes(value) {
  for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (value >= unit) return significant(value / unit) + " " + name;
  }
  return value < 0 ? "under the noise" : value.toFixed(0) + " B";
}
function change(ratio) {
  const percent = (ratio - 1) * 100;
  if (ratio >= 2) return "×" + significant(ratio);
  if (Math.abs(percent) < 0.05) return "±0 %";
  return (percent > 0 ? "+" : "") + percent.toFixed(Math.abs(percent) < 10 ? 1 : 0) + " %";
}
function changeWithInterval({ median, low, high }) {
  const words = high < 2 ? change : ratio => "×" + significant(ratio);
  return `${words(median)} (${words(low)} … ${words(high)})`;
}
const orDash = (value, words) => isNumber(value) ? words(value) : "–";

const METRICS = {
  "goodput": { name: page.metrics["goodput"], words: perSecond, of: cell => cell.goodput_per_second },
  "server-micros-per-answer": { name: page.metrics["server-micros-per-answer"], words: cpuMicros, of: cell => cell.server_micros_per_answer },
  "p50": { name: page.metrics["p50"], words: micros, of: cell => cell.p50_micros },
  "p99": { name: page.metrics["p99"], words: micros, of: cell => cell.p99_micros },
  "bytes-per-connection": { name: page.metrics["bytes-per-connection"], words: bytes, of: cell => cell.bytes_per_connection },
};

const cellAt = (server, row) => results.cells.find(cell => cell.server === server && cell.row === row);
const placesOf = cell => page.places[results.cells.indexOf(cell)];
const rowNamed = name => results.rows.find(row => row.name === name);
const serversInIt = results.servers.filter(server => !server.skipped);
const seriesOf = server => serversInIt.findIndex(other => other.name === server);
const fewFailed = cell => cell.colour === "clean" || cell.colour === "light-yellow";
const ranksIn = (cell, metric) => cell.comparable_in.includes(metric);
