// The parts of the dashboard that need no page: words of axes, figures, texts, counting, and points of charts.
//
//   node units.mjs FOLDER   the folder with the modules

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const load = name => import(pathToFileURL(join(process.argv[2], name)));
const { linearTicks, logTicks, timeTicks } = await load("axis_ticks.js");
const { bytes, count, micros, percent, span } = await load("quantities.js");
const { plain } = await load("plain_text.js");
const { SpaceSaving } = await load("space_saving.js");
const { points, bucketOf } = await load("history_series.js");

// At every magnitude the words of an axis differ, begin with 0, and reach what is drawn.
for (const isBytes of [false, true]) {
  for (let power = -4; power <= 15; power++) {
    for (const factor of [1, 1.01, 1.7, 2, 3.3, 4.99, 5, 6.2, 9.99]) {
      const top = factor * 10 ** power, ticks = linearTicks(top, isBytes), labels = ticks.map(tick => tick.label);
      assert.equal(new Set(labels).size, labels.length, `${top}: ${labels}`);
      assert.ok(labels[0] === "0" && ticks.at(-1).value >= top * (1 - 1e-6) && ticks.length >= 2 && ticks.length <= 7, `${top}: ${labels}`);
      assert.ok(labels.every(label => label.length <= 10), `${top}: ${labels}`);
      for (const { value, label } of ticks.slice(1)) {
        const unit = { "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50 }[label.split(" ")[1] ?? ""];
        assert.ok(Math.abs(parseFloat(label) * unit - value) <= value * 0.011, `${value} reads ${label}`);
      }
    }
  }
}
assert.deepEqual(linearTicks(125000, false).map(tick => tick.label), ["0", "50 k", "100 k", "150 k"]);
assert.deepEqual(linearTicks(0, false).map(tick => tick.label), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
assert.deepEqual(logTicks(40, 3e6).map(tick => tick.label), ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
assert.deepEqual(logTicks(1, 1).map(tick => tick.label), ["1 µs", "10 µs"]);
const hours = timeTicks(1_000_000, 1_086_400, 8);
assert.ok(hours.ticks.length <= 9 && hours.step === 10800, JSON.stringify(hours));

// Figures.
assert.deepEqual([0, 0.25, 7, 12.34, 9999, 12345, 1.5e6, 999_960, 2e9, null].map(count), ["0", "0.25", "7", "12.3", "9999", "12.3 k", "1.50 M", "1.00 M", "2 G", "–"]);
assert.deepEqual([0, 1023, 1024, 1536, 2 ** 30].map(bytes), ["0 B", "1023 B", "1 KiB", "1.50 KiB", "1 GiB"]);
assert.deepEqual([7, 999, 1500, 999_499, 2.5e6, null].map(micros), ["7 µs", "999 µs", "1.50 ms", "999 ms", "2.50 s", "–"]);
assert.deepEqual([percent(99.96), percent(null), span(119), span(7199), span(200_000)], ["100.0 %", "–", "119 s", "119 min", "2 days"]);

// What cannot be seen is written out, everything else stays.
assert.equal(plain("a\u202eb\u001b[31m\u0000\u200b\u2066\u2028<b>ä"), "a\\u{202e}b\\u{1b}[31m\\u{0}\\u{200b}\\u{2066}\\u{2028}<b>ä");
assert.equal(plain("\ud800"), "\\u{d800}");
assert.equal(plain("😀 שלום"), "😀 שלום");

// What is asked for more often than one time in a hundred is there, and no count is too low.
const values = new SpaceSaving(100);
for (let at = 0; at < 20_000; at++) values.add(at % 10 === 0 ? `often ${at % 30}` : `once ${at}`);
for (const value of ["often 0", "often 10", "often 20"]) {
  const found = values.all().find(one => one.value === value);
  assert.ok(found && found.requests >= 666 && found.requests - found.error <= 667, JSON.stringify(found));
}
assert.equal(values.all().length, 100);

// Rows become points: what was counted adds up, of latencies the worst counts, and where there is nothing there is a gap.
const columns = { at_s: 0, span_ms: 1, requests: 2, hits: 3, store_p99: 4, objects: 5, hits_stale: 6, revalidated: 7, coalesced: 8, misses: 9, passes: 10, errors: 11 };
const row = (at, hits, p99) => [at, 1000, hits + 1, hits, p99, at, 0, 0, 0, 1, 0, 0];
const all = points(columns, [row(101, 4, 10), row(102, 6, null), row(107, 1, 7)], 100, 110, 1, 5);
assert.deepEqual(all.map(point => point.at), [102, 104, 106, 108, 110]);
assert.deepEqual(all.map(point => point.bucket.of("requests")), [12, null, null, 2, null]);
const first = all[0].bucket;
assert.deepEqual([first.rate("requests"), first.of("store_p99"), first.of("objects"), first.fromStore()], [6, 10, 102, 10 * 100 / 12]);
assert.equal(bucketOf(columns, []).rate("requests"), null);
console.log("all hold");
