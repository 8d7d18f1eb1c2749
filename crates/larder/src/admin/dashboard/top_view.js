// Who asks most, and what costs most: counted here of what larder tells, as `larder top` does.

import { Following } from "./log_stream.js";
import { bytes, count, micros, percent, perSecond } from "./quantities.js";
import { SpaceSaving } from "./space_saving.js";
import { Table } from "./table.js";

const $ = id => document.getElementById(id);
const KEPT = 1000, SHOWN = 25, RATE = 1000;
const FIELDS = ["url", "host", "path", "client", "agent", "referer", "status", "class", "why", "route", "method", "protocol", "origin", "origin.address", "origin.error", "user"];
const ORDERS = { requests: "requests", misses: "misses", bytes: "bytes", time: "time", failed: "failures" };
const FROM_STORE = new Set(["hit", "stale", "file"]), FROM_ORIGINS = new Set(["miss", "pass", "revalidated", "coalesced", "error"]);

function option(value, words) {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = words;
  return made;
}

export class TopTally {
  constructor(by) {
    Object.assign(this, { by, values: new SpaceSaving(KEPT), told: 0, untold: 0 });
  }

  add(event) {
    if (event.lost !== undefined) {
      this.untold += event.lost;
      return;
    }
    this.told++;
    const value = event[this.by];
    // What has no value is no row: a hit has no origin.
    if (value === undefined) return;
    const counter = this.values.add(String(value));
    const plus = (name, n) => { counter[name] = (counter[name] ?? 0) + n; };
    plus("bytes", event.bytes ?? 0);
    plus("time", event["time.whole"] ?? 0);
    plus("failed", event.status >= 500 ? 1 : 0);
    plus("fromStore", FROM_STORE.has(event.class) ? 1 : 0);
    plus("misses", FROM_ORIGINS.has(event.class) ? 1 : 0);
  }

  rows(order) {
    return this.values.all().sort((a, b) => b[order] - a[order] || (a.value < b.value ? -1 : 1)).slice(0, SHOWN);
  }
}

export class TopView {
  constructor() {
    $("top-by").append(...FIELDS.map(field => option(field, field)));
    $("top-order").append(...Object.entries(ORDERS).map(([value, words]) => option(value, words)));
    const numbers = (...heads) => heads.map(head => ({ head, kind: "n" }));
    this.table = new Table($("top-list"), "Most of all", [{ head: "Value", kind: "long" }, ...numbers("Requests", "A second", "From the store", "5xx", "Bytes", "Mean time", "Error")], "nothing has been asked yet");
    this.following = new Following((sentence, isBad) => this.note(sentence, isBad));
    $("top-form").addEventListener("submit", event => {
      event.preventDefault();
      this.begin();
    });
    $("top-stop").addEventListener("click", () => this.following.stop("Stopped. The numbers stay."));
    $("top-order").addEventListener("change", () => this.draw());
    setInterval(() => { if (this.following.goesOn) this.draw(); }, 1000);
  }

  begin() {
    const form = new FormData($("top-form"));
    this.tally = new TopTally(form.get("by"));
    this.begun = performance.now();
    this.note("Counting …", false);
    this.following.begin(form.get("query"), RATE, event => this.tally.add(event));
    this.draw();
  }

  leave() {
    this.following.stop("Stopped when the page was left. The numbers stay.");
  }

  note(sentence, isBad) {
    $("top-note").className = isBad ? "bad" : "dim";
    $("top-note").textContent = sentence;
  }

  draw() {
    const { tally } = this;
    if (!tally) return;
    const seconds = (performance.now() - this.begun) / 1000, share = tally.told / Math.max(tally.told + tally.untold, 1);
    if (this.following.goesOn) this.note(`${count(tally.told)} exchanges in ${seconds.toFixed(0)} s${share < 1 ? `, ${percent(share * 100)} of all; rates and bytes are scaled by it` : ""}`, false);
    const order = $("top-order").value;
    this.table.setCaption(`By ${tally.by}, most ${ORDERS[order]} first`);
    this.table.update(tally.rows(order).map(one => {
      const counted = Math.max(one.requests - one.error, 1);
      return {
        key: one.value,
        cells: [one.value, count(one.requests), perSecond(one.requests / Math.max(seconds, 1) / share), percent(one.fromStore * 100 / counted), count(one.failed), bytes(one.bytes / share),
          micros(one.time / counted), one.error ? `± ${count(one.error)}` : ""],
      };
    }));
  }
}
