// A chart of lines over time, drawn as SVG: axes whose words differ at every magnitude, annotations for what happened, a readout that follows the pointer or
// the arrow keys, and the same figures as a table. It knows nothing of what the figures mean.

import { linearTicks, logTicks, timeTicks } from "./axis_ticks.js";
import { timeOfDay } from "./quantities.js";

const SPACE = "http://www.w3.org/2000/svg";
const TOP = 8, RIGHT = 8, BOTTOM = 20, LETTER = 7.7, TABLE_ROWS = 20;

function svg(tag, attributes, parent) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent?.append(element);
  return element;
}

function html(tag, parent, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent?.append(element);
  return element;
}

export class LineChart {
  // `series`: `{ name, line, of(bucket) }`, `line` the number of its style; `show(figure)`: a figure in words; `scale`: "linear", "bytes", "percent" or "log".
  constructor(figure, { title, series, show, scale }) {
    Object.assign(this, { title, series, show, scale, points: [], at: null, drawn: null });
    const head = html("figcaption", null, title, "chart-title");
    figure.prepend(head);
    figure.setAttribute("aria-label", title);
    this.legend = html("ul", figure, undefined, "series");
    this.readouts = series.map(one => this.addToLegend(one));
    this.when = html("li", this.legend, "", "dim");
    this.plot = html("div", figure, undefined, "plot");
    this.svg = svg("svg", { "aria-hidden": "true", focusable: "false" }, this.plot);
    this.addTable(figure);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  addToLegend({ name, line }) {
    const item = html("li", this.legend);
    const sample = svg("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
    svg("path", { d: "M0 5H26", class: `line s${line}` }, sample);
    item.append(sample, `${name} `);
    return html("b", item, "–");
  }

  // A slider is what arrow keys move, and its words are the figures at that moment.
  listen() {
    const plot = this.plot;
    plot.tabIndex = 0;
    plot.setAttribute("role", "slider");
    plot.setAttribute("aria-label", `${this.title}: the figures of a moment`);
    plot.setAttribute("aria-valuemin", "0");
    plot.addEventListener("pointermove", event => this.moveTo(this.nearest(event.offsetX)));
    plot.addEventListener("pointerdown", event => this.moveTo(this.nearest(event.offsetX)));
    plot.addEventListener("pointerleave", () => this.moveTo(null));
    plot.addEventListener("blur", () => this.moveTo(null));
    plot.addEventListener("keydown", event => this.key(event));
    this.moveTo(null);
  }

  key(event) {
    const last = this.points.length - 1, now = this.index();
    const to = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, PageDown: now - 10, PageUp: now + 10, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.moveTo(null);
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.moveTo(Math.min(Math.max(to, 0), last));
  }

  // The point that is read out: the chosen moment's, else the newest.
  index() {
    if (this.at === null) return this.points.length - 1;
    const found = this.points.findIndex(point => point.at >= this.at);
    return found < 0 ? this.points.length - 1 : found;
  }

  nearest(x) {
    if (!this.drawn || !this.points.length) return null;
    const { x: placeOf } = this.drawn;
    let best = 0;
    this.points.forEach((point, at) => {
      if (Math.abs(placeOf(point.at) - x) < Math.abs(placeOf(this.points[best].at) - x)) best = at;
    });
    return best;
  }

  moveTo(index) {
    this.at = index === null || index < 0 ? null : this.points[index]?.at ?? null;
    this.readOut();
  }

  readOut() {
    const point = this.points[this.index()];
    const figures = this.series.map(one => this.show(point ? one.of(point.bucket) : null));
    this.readouts.forEach((readout, at) => { readout.textContent = figures[at]; });
    const when = point ? timeOfDay(point.at) : "";
    this.when.textContent = this.at === null ? "" : when;
    const words = this.series.map((one, at) => `${one.name} ${figures[at]}`).join(", ");
    this.plot.setAttribute("aria-valuemax", String(Math.max(this.points.length - 1, 0)));
    this.plot.setAttribute("aria-valuenow", String(Math.max(this.index(), 0)));
    // A reader hears of a moment that it has gone to, and not of each that passes.
    if (this.at !== null || document.activeElement !== this.plot) this.plot.setAttribute("aria-valuetext", point ? `${when}: ${words}` : "no figures yet");
    const cursor = this.drawn?.cursor;
    if (cursor) {
      cursor.style.display = this.at === null ? "none" : "";
      if (this.at !== null && point) {
        const x = this.drawn.x(point.at);
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
      }
    }
  }

  // How many points there is room for.
  get room() {
    return Math.max(40, Math.floor(this.plot.clientWidth / 2));
  }

  set({ points, from, to, annotations }) {
    Object.assign(this, { points, from, to, annotations });
    this.draw();
  }

  values() {
    return this.points.map(point => this.series.map(one => one.of(point.bucket)));
  }

  ticks(values) {
    const all = values.flat().filter(value => value !== null);
    if (this.scale === "percent") return linearTicks(100, false).map(tick => ({ ...tick, label: `${tick.value} %` }));
    if (this.scale === "log") return logTicks(Math.min(...all, Infinity) === Infinity ? 1 : Math.min(...all), Math.max(...all, 10));
    return linearTicks(Math.max(...all, 0), this.scale === "bytes");
  }

  draw() {
    const width = this.plot.clientWidth, height = this.plot.clientHeight;
    if (!width || !height || this.from === undefined) return;
    const values = this.values(), ticks = this.ticks(values);
    const left = Math.ceil(Math.max(...ticks.map(tick => tick.label.length)) * LETTER) + 10;
    const [low, high] = [ticks[0].value, ticks[ticks.length - 1].value];
    const share = this.scale === "log"
      ? value => Math.log(Math.max(value, low) / low) / Math.log(high / low)
      : value => (value - low) / (high - low);
    const x = at => left + (at - this.from) / (this.to - this.from) * (width - left - RIGHT);
    const y = value => TOP + (1 - share(value)) * (height - TOP - BOTTOM);
    const group = svg("g", {});
    this.drawGrid(group, { ticks, x, y, left, width, height });
    let free = left;
    for (const annotation of this.annotations) free = this.drawAnnotation(group, annotation, { x, left, height, free });
    this.series.forEach((one, at) => {
      svg("path", { class: `line s${one.line}`, d: this.path(values.map(all => all[at]), x, y) }, group);
    });
    const cursor = svg("line", { class: "cursor", y1: TOP, y2: height - BOTTOM }, group);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(group);
    this.drawn = { x, cursor };
    this.readOut();
  }

  drawGrid(group, { ticks, x, y, left, width, height }) {
    for (const { value, label } of ticks) {
      svg("line", { class: "grid", x1: left, x2: width - RIGHT, y1: y(value), y2: y(value) }, group);
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, group).textContent = label;
    }
    const { step, ticks: times } = timeTicks(this.from, this.to, Math.max(2, Math.floor((width - left) / 75)));
    for (const at of times) {
      const place = x(at);
      if (place < left + 20 || place > width - 22) continue;
      svg("text", { x: place, y: height - 5, "text-anchor": "middle" }, group).textContent = timeOfDay(at, step < 60);
    }
  }

  // Its word stands beside it where there is room for one, from `free` on; what is told is where the next may stand.
  drawAnnotation(group, annotation, { x, left, height, free }) {
    const place = x(annotation.at_s);
    if (place < left) return free;
    svg("line", { class: "annotation", x1: place, x2: place, y1: TOP, y2: height - BOTTOM }, group);
    if (place < free) return free;
    const end = place + annotation.kind.length * LETTER + 4, isCut = end > this.plot.clientWidth;
    svg("text", { x: isCut ? place - 2 : place + 2, y: TOP + 8, "text-anchor": isCut ? "end" : "start" }, group).textContent = annotation.kind;
    return Math.max(end, place);
  }

  // A line that breaks where there is nothing; a point alone is a dash.
  path(values, x, y) {
    let path = "", isOpen = false;
    values.forEach((value, at) => {
      if (value === null) {
        isOpen = false;
        return;
      }
      const place = `${x(this.points[at].at).toFixed(1)} ${y(value).toFixed(1)}`;
      const isAlone = !isOpen && (values[at + 1] ?? null) === null;
      path += isOpen ? `L${place}` : `M${place}${isAlone ? "h2" : ""}`;
      isOpen = true;
    });
    return path;
  }

  // The figures in rows. They are of the moment at which it was opened: what changes under a reader cannot be read.
  addTable(figure) {
    const details = html("details", figure);
    html("summary", details, "As a table");
    const scroll = html("div", details, undefined, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", `${this.title}, as a table`);
    details.addEventListener("toggle", () => {
      scroll.replaceChildren(...(details.open ? [this.table()] : []));
    });
  }

  table() {
    const table = document.createElement("table");
    html("caption", table, this.points.length ? `${this.title}, as of ${timeOfDay(this.to)}` : this.title);
    const head = html("tr", html("thead", table));
    for (const name of ["Time", ...this.series.map(one => one.name)]) html("th", head, name).scope = "col";
    const body = html("tbody", table);
    const every = Math.max(1, Math.ceil(this.points.length / TABLE_ROWS));
    for (let at = this.points.length - 1; at >= 0; at -= every) {
      const row = html("tr", body);
      html("th", row, timeOfDay(this.points[at].at)).scope = "row";
      for (const one of this.series) html("td", row, this.show(one.of(this.points[at].bucket)));
    }
    return table;
  }
}
