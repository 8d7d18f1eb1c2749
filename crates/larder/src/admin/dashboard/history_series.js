// From rows of the history to what a chart draws: rows that fall on the same point become one, and of a row a figure is made.

const GAUGES = new Set(["connections", "requests_active", "memory_used_bytes", "memory_resident_bytes", "objects", "disk_used_bytes", "disk_objects",
  "addresses_out", "addresses"]);
const isLatency = name => /_p\d+$/.test(name);

// Several rows as one: what was counted is added up, of latencies the worst is taken, of levels the last.
export class Bucket {
  constructor(columns) {
    this.columns = columns;
    this.values = null;
  }

  add(row) {
    if (this.values === null) {
      this.values = row.slice();
      return;
    }
    for (const [name, at] of Object.entries(this.columns)) {
      const value = row[at], before = this.values[at];
      if (name === "at_s" || GAUGES.has(name)) this.values[at] = value;
      else if (isLatency(name)) this.values[at] = value === null ? before : Math.max(before ?? 0, value);
      else this.values[at] = before + value;
    }
  }

  get isEmpty() {
    return this.values === null;
  }

  of(name) {
    return this.values === null ? null : this.values[this.columns[name]] ?? null;
  }

  sum(...names) {
    return names.reduce((sum, name) => sum + (this.of(name) ?? 0), 0);
  }

  // A second.
  rate(...names) {
    const span = this.of("span_ms");
    return span ? this.sum(...names) * 1000 / span : null;
  }

  // How much of what the store or an origin was asked for came from the store, in percent.
  fromStore() {
    const hits = this.sum("hits", "hits_stale");
    const asked = hits + this.sum("revalidated", "coalesced", "misses", "passes", "errors");
    return asked === 0 ? null : hits * 100 / asked;
  }
}

export function bucketOf(columns, rows) {
  const bucket = new Bucket(columns);
  for (const row of rows) bucket.add(row);
  return bucket;
}

// `most` points between two moments, each with its bucket; a point without rows is a gap.
export function points(columns, rows, from, to, step, most) {
  const width = Math.max(step, Math.ceil((to - from) / Math.max(most, 1) / step) * step);
  const first = Math.floor(from / width) * width;
  const all = [];
  for (let at = first; at < to; at += width) all.push({ at: at + width, bucket: new Bucket(columns) });
  for (const row of rows) {
    const point = all[Math.ceil((row[0] - first) / width) - 1];
    if (point) point.bucket.add(row);
  }
  // What is not over yet says too little, and would draw a fall that is none.
  const last = all[all.length - 1];
  if (last && last.at > to && all.length > 1) all.pop();
  return all;
}
