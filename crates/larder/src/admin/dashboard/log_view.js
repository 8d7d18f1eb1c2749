// The live log: the newest exchanges that a query picks out, a row each.

import { Following } from "./log_stream.js";
import { bytes, count, micros, timeOfDay } from "./quantities.js";
import { Table } from "./table.js";

const $ = id => document.getElementById(id);
const SHOWN = 100;

// As clocks here show it, with its thousandths.
const clock = time => (time ? timeOfDay(Date.parse(time) / 1000) + time.slice(19, 23) : "");

export class LogView {
  // `inspect(url)` leads to what is stored of it.
  constructor(inspect) {
    this.inspect = inspect;
    Object.assign(this, { events: [], lost: 0, told: 0, drawn: 0 });
    this.table = new Table($("log-lines"), "Exchanges, the newest first", [{ head: "Time", kind: "short" }, { head: "Status", kind: "n" }, { head: "Class" }, { head: "Took", kind: "n" },
      { head: "Size", kind: "n" }, { head: "Request", kind: "url" }, { head: "Client" }, { head: "Origin" }, { head: "Why", kind: "long" }, { head: "Agent", kind: "long" }, { head: "Explained", kind: "act" }], "nothing that the query picks out has been asked yet");
    this.following = new Following((sentence, isBad) => this.note(sentence, isBad));
    $("log-form").addEventListener("submit", event => {
      event.preventDefault();
      this.begin();
    });
    $("log-stop").addEventListener("click", () => this.following.stop("Stopped. The lines stay."));
    setInterval(() => { if (this.following.goesOn && this.drawn !== this.told) this.draw(); }, 500);
  }

  begin() {
    const form = new FormData($("log-form"));
    Object.assign(this, { events: [], lost: 0, told: 0, drawn: 0 });
    this.note("Following …", false);
    this.draw();
    this.following.begin(form.get("query"), form.get("rate"), event => this.add(event));
  }

  add(event) {
    this.told++;
    if (event.lost !== undefined) {
      this.lost += event.lost;
      return;
    }
    this.events.unshift({ key: this.told, event });
    this.events.length = Math.min(this.events.length, SHOWN);
  }

  leave() {
    this.following.stop("Stopped when the page was left. The lines stay.");
  }

  note(sentence, isBad) {
    $("log-note").className = isBad ? "bad" : "dim";
    $("log-note").textContent = sentence;
  }

  draw() {
    this.drawn = this.told;
    if (this.following.goesOn) this.note(`Following${this.lost ? `; ${count(this.lost)} more than asked for were left out` : ""}`, false);
    this.table.update(this.events.map(({ key, event }) => ({
      key,
      cells: [clock(event.time), String(event.status), event.class, micros(event["time.whole"] ?? null), bytes(event.bytes ?? 0), `${event.method ?? ""} ${event.url ?? ""}`,
        event.client, [event.origin, event["origin.error"] ?? event["origin.status"]].filter(word => word !== undefined).join(" "), event.why ?? event["error.detail"] ?? "", event.agent],
      acts: () => this.link(event),
    })));
  }

  link(event) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = "Explain";
    made.addEventListener("click", () => this.inspect(`${event.tls ? "https" : "http"}://${event.url}`, event.method));
    return made;
  }
}
