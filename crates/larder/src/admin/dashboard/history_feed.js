// The history that larder keeps, as this page has it: the last hour by the second or the last day by the minute, asked for anew as it grows.

import { askJson } from "./admin_api.js";

const KEPT_S = { 1: 3600, 60: 86400 };

export class HistoryFeed {
  constructor() {
    this.columns = {};
    this.rows = { 1: [], 60: [] };
    this.annotations = [];
    this.nowS = 0;
  }

  // Asks for what is new in this step, 1 or 60 seconds. Is there more already?
  async renew(step) {
    const rows = this.rows[step];
    const since = rows.length ? rows[rows.length - 1][0] : 0;
    const told = await askJson(`history?step=${step}&since=${since}`);
    this.columns = Object.fromEntries(told.columns.map((name, at) => [name, at]));
    this.nowS = told.now_s;
    // After a restart without a file, or when its clock was set back, what is here is of another time.
    if (rows.length && told.now_s < since) rows.length = 0;
    rows.push(...told.rows);
    const oldest = told.now_s - KEPT_S[step];
    const stale = rows.findIndex(row => row[0] > oldest);
    rows.splice(0, stale < 0 ? rows.length : stale);
    this.takeAnnotations(told.annotations);
    return told.more;
  }

  // An annotation that counts on comes again, with the same beginning.
  takeAnnotations(told) {
    const key = annotation => `${annotation.at_s} ${annotation.kind} ${annotation.text}`;
    const all = new Map(this.annotations.map(annotation => [key(annotation), annotation]));
    for (const annotation of told) all.set(key(annotation), annotation);
    this.annotations = [...all.values()].filter(annotation => annotation.until_s > this.nowS - KEPT_S[60]).sort((a, b) => a.at_s - b.at_s);
  }

  // The rows of the last so many seconds, in the step that has them.
  last(seconds) {
    const rows = this.rows[seconds > KEPT_S[1] ? 60 : 1];
    const from = this.nowS - seconds;
    let begin = rows.length;
    while (begin > 0 && rows[begin - 1][0] > from) begin--;
    return rows.slice(begin);
  }
}
