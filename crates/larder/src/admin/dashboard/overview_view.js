// The overview: what is asked, how much of it the store answers, how long answers take, what fails, and what was done meanwhile.

import { LineChart } from "./chart.js";
import { bucketOf, points } from "./history_series.js";
import { plain } from "./plain_text.js";
import { bytes, bytesPerSecond, count, micros, percent, perSecond, span, timeOfDay } from "./quantities.js";
import { Table } from "./table.js";

const $ = id => document.getElementById(id);
const CLASSES = [["store", "from the store"], ["fetched", "fetched"], ["passed", "passed"], ["failed", "failed"]];
const HAPPENED = {
  restart: "larder was started", reload: "reloaded", purge: "purged", out: "gets no requests any more", back: "gets requests again", order: "an operator's order", note: "an operator's note",
};
const WRONG = {
  origin_errors_resolve: "origin names that did not resolve", origin_errors_connect: "origins that could not be connected to",
  origin_errors_first_byte: "origins that sent no answer in time", origin_errors_protocol: "origins whose answer was not HTTP",
  origin_errors_truncated: "answers cut short by an origin", origin_errors_busy: "requests refused because an origin was busy",
  errors: "error answers that larder made", refused: "requests refused", answers_cut: "answers cut off", log_lines_lost: "log lines lost", panics: "panics",
};

// Cards are a list of terms; each keeps its elements.
export function setCards(list, cards) {
  cards.forEach(([label, figure, note], at) => {
    let card = list.children[at];
    if (!card) {
      card = document.createElement("div");
      card.className = "card";
      card.append(document.createElement("dt"), document.createElement("dd"), document.createElement("dd"));
      card.children[1].className = "figure";
      card.children[2].className = "note";
      list.append(card);
    }
    [label, figure, note || "\u00a0"].forEach((text, place) => { if (card.children[place].textContent !== text) card.children[place].textContent = text; });
  });
}

export class OverviewView {
  constructor(feed) {
    this.feed = feed;
    this.seconds = 300;
    this.percentile = "p99";
    const chart = (id, options) => new LineChart($(id), options);
    const series = (...all) => all.map(([name, line, of]) => ({ name, line, of }));
    this.charts = [
      chart("chart-requests", {
        title: "Requests a second", scale: "linear", show: perSecond,
        series: series(["from the store", 0, b => b.rate("hits", "hits_stale", "files")], ["fetched", 1, b => b.rate("misses", "coalesced", "revalidated")],
          ["passed", 2, b => b.rate("passes", "pipes", "memcached_requests")], ["failed or refused", 3, b => b.rate("errors", "refused")]),
      }),
      chart("chart-ratio", { title: "From the store, in percent", scale: "percent", show: percent, series: series(["from the store", 0, b => b.fromStore()]) }),
      chart("chart-latency", {
        title: "Latency to the last byte", scale: "log", show: micros,
        series: series(...CLASSES.map(([column, name], line) => [name, line, b => b.of(`${column}_${this.percentile}`)])),
      }),
      chart("chart-bytes", {
        title: "Bytes a second", scale: "bytes", show: bytesPerSecond,
        series: series(["to clients", 0, b => b.rate("bytes_out")], ["from origins", 1, b => b.rate("origin_bytes_in")]),
      }),
      chart("chart-errors", {
        title: "Failures a second", scale: "linear", show: perSecond,
        series: series(["error answers", 3, b => b.rate("errors")], ["faults of origins", 1, b => b.rate("origin_errors")], ["refused", 2, b => b.rate("refused")],
          ["answers cut off", 4, b => b.rate("answers_cut")]),
      }),
    ];
    this.latency = new Table($("latency"), "Latency, the newest of each class in this range", [{ head: "Class" }, ...["half", "90 %", "99 %"].map(head => ({ head, kind: "n" }))], "no answers yet");
    this.annotations = new Table($("annotations"), "What happened", [{ head: "Time", kind: "short" }, { head: "What" }, { head: "Whom" }, { head: "Times", kind: "n" }], "nothing in this range");
    this.wrong = new Table($("wrong"), "What went wrong since the start", [{ head: "What" }, { head: "Times", kind: "n" }], "nothing");
    this.certificates = new Table($("certificates"), "Certificates", [{ head: "Names" }, { head: "At" }, { head: "Ends" }, { head: "Renewal" }], "none");
    this.listen();
  }

  listen() {
    $("range").addEventListener("change", event => {
      this.seconds = Number(event.target.value);
      dispatchEvent(new Event("larder-range"));
    });
    $("percentile").addEventListener("change", event => {
      this.percentile = event.target.value;
      this.drawHistory();
    });
  }

  get step() {
    return this.seconds > 3600 ? 60 : 1;
  }

  drawHistory() {
    drawCharts(this.feed, this.charts, this.seconds, this.step);
    const rows = this.feed.last(this.seconds);
    const now = bucketOf(this.feed.columns, this.step === 1 ? rows.slice(-10) : rows.slice(-1));
    this.drawCards(now);
    const newest = column => rows.findLast(row => row[this.feed.columns[column]] !== null)?.[this.feed.columns[column]] ?? null;
    this.latency.update(CLASSES.map(([column, name]) => ({ key: column, cells: [name, ...["p50", "p90", "p99"].map(p => micros(newest(`${column}_${p}`)))] })));
    const from = this.feed.nowS - this.seconds;
    this.annotations.update(this.feed.annotations.filter(annotation => annotation.until_s > from).reverse().slice(0, 50).map(annotation => ({
      key: `${annotation.at_s} ${annotation.kind} ${annotation.text}`,
      cells: [timeOfDay(annotation.at_s), HAPPENED[annotation.kind] ?? annotation.kind, annotation.text, count(annotation.count)],
    })));
  }

  drawCards(now) {
    const status = this.status ?? {};
    const whole = now.of("fetched_p99") ?? null;
    setCards($("cards"), [
      ["Requests", perSecond(now.rate("requests")), status.requests === undefined ? "" : `${count(status.requests)} in all`],
      ["From the store", percent(now.fromStore()), status.hit_percent == null ? "" : `${status.hit_percent.toFixed(1)} % in all`],
      ["99 % of hits within", micros(now.of("store_p99")), `fetched ${micros(whole)}`],
      ["To clients", bytesPerSecond(now.rate("bytes_out")), status.bytes_out === undefined ? "" : `${bytes(status.bytes_out)} in all`],
      ["Error answers", perSecond(now.rate("errors")), status.errors === undefined ? "" : `${count(status.errors)} in all`],
      ["Connections", count(now.of("connections")), status.connections ? `${count(status.connections.waiting)} idle` : ""],
      ["Addresses out", now.isEmpty ? "–" : `${now.of("addresses_out")} of ${now.of("addresses")}`, "of origins"],
      ["Coalesced", perSecond(now.rate("coalesced")), "shared a fetch"],
    ]);
  }

  drawStatus(status) {
    this.status = status;
    const last = status.reloads.last;
    const refused = last?.outcome === "refused" ? [{ key: "reload", cells: [`the last reload was refused, the former config holds: ${last.error} (${last.at})`, count(status.reloads.failures)] }] : [];
    this.wrong.update(refused.concat(Object.keys(WRONG).filter(name => status[name] > 0).map(name => ({ key: name, cells: [WRONG[name], count(status[name])] }))));
    this.drawCertificates(status);
  }

  drawCertificates({ certificates, acme }) {
    $("certificates-panel").hidden = certificates.length + acme.length === 0;
    const set = of => of.names.slice().sort().join();
    const renewal = order => {
      if (!order) return "from a file";
      if (order.failures > 0) return `fails: ${order.last_failure}`;
      return order.renews ? `renewed ${order.renews}` : "ordered";
    };
    const shown = certificates.map(one => [one.names.join(", "), one.listener, one.expires_in_seconds > 0 ? `in ${span(one.expires_in_seconds)}` : "expired",
      renewal(acme.find(order => set(order) === set(one)))]);
    const waiting = acme.filter(order => !certificates.some(one => set(one) === set(order)));
    const all = shown.concat(waiting.map(order => [order.names.join(", "), "–", "none has come", renewal(order)]));
    this.certificates.update(all.map(cells => ({ key: plain(cells.slice(0, 2).join(" ")), cells })));
  }
}

// The same rows for all charts of a page.
export function drawCharts(feed, charts, seconds, step) {
  const to = Math.floor(feed.nowS / step) * step, from = to - seconds;
  const rows = feed.last(seconds), annotations = feed.annotations.filter(annotation => annotation.at_s > from);
  const sets = new Map();
  for (const chart of charts) {
    const room = chart.room;
    if (!sets.has(room)) sets.set(room, points(feed.columns, rows, from, to, step, room));
    chart.set({ points: sets.get(room), from, to, annotations });
  }
}
