// What `GET /explain` tells, in words.

import { isolated } from "./plain_text.js";
import { bytes, count, span } from "./quantities.js";

function element(tag, parent, ...content) {
  const made = document.createElement(tag);
  made.append(...content);
  parent?.append(made);
  return made;
}

function fact(list, term, ...content) {
  element("dt", list, term);
  element("dd", list, ...content);
}

function routeWords(route) {
  if (route === null || typeof route !== "object") return String(route ?? "–");
  return Object.values(route).filter(value => value !== null && value !== undefined).map(value => (typeof value === "object" ? JSON.stringify(value) : String(value))).join(", ");
}

// The panel's content.
export function explanation(told) {
  const part = document.createDocumentFragment();
  const verdict = element("p", part, isolated(`Would be: ${told.would_be}`), ": ", isolated(told.says ?? ""));
  verdict.className = "verdict";
  const facts = element("dl", part);
  facts.className = "facts";
  fact(facts, "Route", isolated(routeWords(told.route)));
  fact(facts, "Key", told.key ? isolated(told.key) : "none");
  fact(facts, "Stored", told.stored ? (told.stored.length === 1 ? "1 response" : `${told.stored.length} responses`) : "nothing is known");
  if (told.chosen) fact(facts, "Chosen", `number ${told.chosen.number}, `, isolated(told.chosen.because));
  fact(facts, "At", isolated(told.at));
  for (const reason of told.reasons ?? []) reasonPart(part, reason);
  for (const note of told.notes ?? []) element("p", part, isolated(typeof note === "string" ? note : JSON.stringify(note))).className = "dim";
  return part;
}

function reasonPart(part, reason) {
  const box = element("div", part);
  box.className = "reason";
  const about = [].concat(reason.about ?? []).filter(word => word !== "").join(", ");
  element("p", box, "No hit because: ", element("strong", null, isolated(reason.word)), ...(about ? [" [", isolated(about), "]"] : []));
  element("p", box, isolated(reason.means));
  element("p", box, "To change it: ", isolated(reason.way_out), " (", isolated(reason.page), ")");
}

// Rows for the table of what is stored.
export function variants(told) {
  return (told.stored ?? []).map((one, at) => ({
    key: String(at),
    cells: [
      `${at + 1}${told.chosen?.number === at + 1 ? ", chosen" : ""}`,
      String(one.status),
      [].concat(one.vary ?? []).join(", ") || "–",
      one.coding || "none",
      one.part ? `${bytes(one.body_bytes)}, bytes ${one.part[0]} to ${one.part[1]}` : bytes(one.body_bytes),
      span(one.age_s),
      freshness(one),
      count(one.hits),
      one.etag || "–",
      one.on_disk ? "memory and disk" : "memory",
    ],
  }));
}

function freshness(one) {
  const by = one.fresh_by ? ` by ${one.fresh_by}` : "";
  if (one.always_confirmed) return `confirmed each time${by}`;
  return `${one.fresh ? "fresh until" : "stale since"} ${one.fresh_until}${by}`;
}
