// Memory and disk: how full they are, over the last hour, and by what.

import { LineChart } from "./chart.js";
import { drawCharts, setCards } from "./overview_view.js";
import { bytes, count, percent } from "./quantities.js";
import { Table } from "./table.js";

const $ = id => document.getElementById(id);
const HOUR = 3600;

const MEMORY = [
  ["limit_bytes", "what the process may take beside its base ([memory] size)"], ["base_bytes", "its base"], ["occupied_bytes", "what is occupied of both"],
  ["share_bytes", "the store's share now"], ["used_bytes", "of it used: objects, index, bodies under way"], ["leaving_bytes", "of this, kept for the last readers alone"],
  ["file_bytes", "of this, in the page file"], ["resident_bytes", "resident, as the kernel counts"],
];

export class StoreView {
  constructor(feed) {
    this.feed = feed;
    const of = (name, line, column) => ({ name, line, of: bucket => bucket.of(column) });
    this.charts = [
      new LineChart($("chart-memory"), {
        title: "Memory, the last hour", scale: "bytes", show: bytes,
        series: [of("used by the store", 0, "memory_used_bytes"), of("resident", 1, "memory_resident_bytes")],
      }),
      new LineChart($("chart-objects"), {
        title: "Objects, the last hour", scale: "linear", show: count, series: [of("in memory", 0, "objects"), of("on disks", 1, "disk_objects")],
      }),
      new LineChart($("chart-disk"), { title: "Disk, the last hour", scale: "bytes", show: bytes, series: [of("written segments", 0, "disk_used_bytes")] }),
    ];
    this.memory = new Table($("memory"), "Memory now", [{ head: "What" }, { head: "Bytes", kind: "n" }], "–");
    this.disks = new Table($("disks"), "Disks", [{ head: "Path", kind: "long" }, { head: "State", kind: "short" },
      ...["Size", "Full", "Objects", "Hits", "Read", "Written", "Refused", "Damaged"].map(head => ({ head, kind: "n" }))], "there is no [[disk]]: what is stored ends with the process");
  }

  drawHistory() {
    drawCharts(this.feed, this.charts, HOUR, 1);
  }

  drawStatus(status) {
    $("chart-disk").hidden = status.disks.length === 0;
    const ratio = status.hit_ratios["60min"];
    setCards($("store-cards"), [
      ["Objects", count(status.objects), `${count(status.keys)} keys`],
      ["Used", bytes(status.memory.used_bytes), `of ${bytes(status.memory.share_bytes)}`],
      ["Stored", count(status.stored), "since the start"],
      ["Evicted", count(status.evictions), "since the start"],
      ["Invalidated", count(status.invalidated), "since the start"],
      ["From the store", percent(ratio.request_percent), `last hour, bytes ${percent(ratio.byte_percent)}`],
      ["From disks", percent(ratio.disk_percent), "of these hits"],
      ["Encodings", count(status.encodings_made), "made and kept"],
    ]);
    this.memory.update(MEMORY.map(([name, words]) => ({ key: name, cells: [words, bytes(status.memory[name])] })));
    this.disks.update(status.disks.map(disk => ({
      key: disk.path,
      cells: [disk.path, disk.index_ready ? disk.state : `${disk.state}, index ${disk.index_percent} %`, bytes(disk.limit_bytes),
        percent(disk.segments ? (disk.segments - disk.segments_free) * 100 / disk.segments : null), count(disk.objects), count(disk.hits),
        bytes(disk.bytes_read), bytes(disk.bytes_written), count(disk.refused), count(disk.damaged)],
    })));
  }
}
