"use strict";
// The charts: curves over the load, latency by percentile, CPU and memory over time, and the forest of differences.
// A server has one colour and one shape everywhere, so that neither has to be told by colour alone. Needs uPlot and
// report_words.js.

const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down", "plus", "ring"];
const CHART_HEIGHT = 260;
// Steps of an axis of bytes.
const POWERS = Array.from({ length: 44 }, (_, power) => 2 ** power);

// Charts are drawn on canvas, which knows no style sheet: colours are asked for when they are drawn.
const styleColour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColour = index => styleColour("--series-" + index % 8);

// Canvas and SVG take the same path, so the legend's marks are the chart's.
function shapePath(shape, x, y, r) {
  const lines = points => "M" + points.map(([dx, dy]) => `${x + dx * r} ${y + dy * r}`).join("L") + "Z";
  switch (SHAPES[shape % SHAPES.length]) {
    case "square": return lines([[-.9, -.9], [.9, -.9], [.9, .9], [-.9, .9]]);
    case "triangle": return lines([[0, -1.2], [1.1, .9], [-1.1, .9]]);
    case "down": return lines([[0, 1.2], [1.1, -.9], [-1.1, -.9]]);
    case "diamond": return lines([[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]]);
    case "plus": return lines([[-.35, -1.2], [.35, -1.2], [.35, -.35], [1.2, -.35], [1.2, .35], [.35, .35], [.35, 1.2], [-.35, 1.2], [-.35, .35], [-1.2, .35], [-1.2, -.35], [-.35, -.35]]);
    case "cross": return lines([[0, -.5], [.7, -1.2], [1.2, -.7], [.5, 0], [1.2, .7], [.7, 1.2], [0, .5], [-.7, 1.2], [-1.2, .7], [-.5, 0], [-1.2, -.7], [-.7, -1.2]]);
    case "ring": return shapePath(0, x, y, r) + shapePath(0, x, y, r * .35);
    default: return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  }
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function drawServerLegends() {
  for (const list of document.querySelectorAll("[data-legend=servers]")) {
    list.replaceChildren(...serversInIt.map((server, index) => {
      const colour = seriesColour(index);
      const glyph = svg("svg", { viewBox: "0 0 26 14", class: "glyph", "aria-hidden": "true" });
      glyph.append(svg("path", { d: "M0 7H26", stroke: colour, "stroke-width": 2 }),
        svg("path", { d: shapePath(index, 13, 7, 5), fill: colour, "fill-rule": "evenodd" }));
      return make("li", "", glyph, server.name);
    }));
  }
}

// Drawn anew when the theme or the width changes.
let drawn = [];
function forget(within) {
  drawn = drawn.filter(chart => {
    if (within.contains(chart.root)) {
      chart.destroy();
      return false;
    }
    return true;
  });
  within.replaceChildren();
}

// One chart. `series`: { server, xs, ys, bars: [[low, high]], hollow: [bool], dash }, each with its own xs, which are
// joined for uPlot. `x` and `y`: { log, words, ticks, label }.
function chart(into, name, series, x, y, more = {}) {
  const box = make("div", "chart", make("h4", "", name));
  const readout = make("div", "readout");
  into.append(box);
  const xs = [...new Set(series.flatMap(one => one.xs))].sort((a, b) => a - b);
  const column = one => {
    const at = new Map(one.xs.map((value, index) => [value, one.ys[index]]));
    return xs.map(value => at.get(value) ?? (one.xs.includes(value) ? null : undefined));
  };
  const ink = styleColour("--dim"), rule = styleColour("--rule");
  // Ticks and the gap behind them, and the longest of the words beside the axis.
  const roomOf = (_, words) => Math.max(66, 24 + 7 * Math.max(0, ...(words || []).map(word => String(word).length)));
  const axis = (of, side) => ({
    stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 }, side, label: of.label,
    labelSize: 18, labelFont: "12px system-ui", font: "12px system-ui", size: side === 3 ? roomOf : 40,
    values: (_, splits) => splits.map(value => value === null ? "" : of.words(value)),
    ...(of.incrs ? { incrs: of.incrs } : {}), ...(of.ticks ? { splits: () => of.ticks } : {}), ...(of.log ? { filter: (_, splits) => splits } : {}),
  });
  // The bars must fit too, and uPlot knows only the lines.
  const tops = series.flatMap(one => [...one.ys, ...(one.bars || []).flat()]).filter(value => isNumber(value) && value > 0);
  if (y.fromZero) y.range = [0, Math.max(1e-9, ...tops) * 1.08];
  else if (y.log && tops.length) {
    y.range = padded(Math.min(...tops), Math.max(...tops), true);
    y.ticks = decades(...y.range);
  }
  const scale = of => ({ time: false, distr: of.log ? 3 : 1, ...(of.range ? { range: () => of.range } : {}) });
  const options = {
    width: Math.max(260, box.clientWidth), height: more.height || CHART_HEIGHT, legend: { show: false },
    scales: { x: { ...scale(x), range: ((_, low, high) => x.range || padded(low, high, x.log)) }, y: scale(y) },
    axes: [axis(x, 2), axis(y, 3)],
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    series: [{}, ...series.map(one => ({
      label: one.server, stroke: seriesColour(seriesOf(one.server)), width: one.dash ? 1.5 : 2, dash: one.dash,
      points: { show: false }, spanGaps: false,
    }))],
    hooks: {
      draw: [plot => series.forEach((one, index) => drawMarks(plot, one, index, more.marksEvery || 1)), ...(more.draw || [])],
      setCursor: [plot => { readout.textContent = readoutAt(plot, xs, series, x, y); }],
    },
  };
  drawn.push(new uPlot(options, [xs, ...series.map(column)], box));
  box.append(readout);
  // What a canvas shows, for those who cannot see it, is in the matrix; the chart only says what it is.
  box.querySelector("canvas").setAttribute("role", "img");
  box.querySelector("canvas").setAttribute("aria-label", `${name}: ${series.map(one => one.server).join(", ")}`);
}

// Room for marks and bars at both ends.
function padded(low, high, log) {
  if (log) {
    const room = Math.max((high / low) ** 0.06, 1.15);
    return [low / room, high * room];
  }
  const room = (high - low) * 0.03 || 1;
  return [low - room, high + room];
}

// On a logarithmic axis 1, 2 and 5 of each ten are named, or only the tens when there are many; where all values are close together, their middle.
function decades(low, high) {
  const named = high / low > 2e3 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) ticks.push(...named.map(digit => digit * ten));
  const within = ticks.filter(tick => tick >= low && tick <= high);
  return within.length ? within : [Math.sqrt(low * high)];
}

function drawMarks(plot, one, index, every) {
  const context = plot.ctx, ratio = devicePixelRatio || 1;
  const shape = seriesOf(one.server), colour = seriesColour(shape);
  context.save();
  context.beginPath();
  context.rect(plot.bbox.left - 8 * ratio, plot.bbox.top - 8 * ratio, plot.bbox.width + 16 * ratio, plot.bbox.height + 16 * ratio);
  context.clip();
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 1.5 * ratio;
  one.xs.forEach((value, at) => {
    if (!isNumber(one.ys[at])) return;
    const left = plot.valToPos(value, "x", true), top = plot.valToPos(one.ys[at], "y", true);
    const bar = one.bars?.[at];
    if (bar) {
      const low = plot.valToPos(Math.max(bar[0], 1e-9), "y", true), high = plot.valToPos(Math.max(bar[1], 1e-9), "y", true);
      context.beginPath();
      context.moveTo(left, low);
      context.lineTo(left, high);
      for (const end of [low, high]) {
        context.moveTo(left - 4 * ratio, end);
        context.lineTo(left + 4 * ratio, end);
      }
      context.stroke();
    }
    if (one.dash || at % every !== Math.floor(every / 2)) return;
    const mark = new Path2D(shapePath(shape, left, top, 4.5 * ratio));
    if (one.hollow?.[at]) {
      context.fillStyle = styleColour("--card");
      context.fill(mark);
      context.stroke(mark);
      context.fillStyle = colour;
    } else {
      context.fill(mark, "evenodd");
    }
  });
  context.restore();
}

function readoutAt(plot, xs, series, x, y) {
  const at = plot.cursor.idx;
  if (at === null || at === undefined || plot.cursor.left < 0) return "";
  const words = series.filter(one => !one.dash).map(one => {
    const value = one.ys[one.xs.indexOf(xs[at])];
    return isNumber(value) ? `${one.server} ${y.words(value)}` : null;
  });
  return [x.words(xs[at]), ...words.filter(Boolean)].join(" · ");
}

// ---- Curves over the load

const inFamily = family => results.rows.filter(row => row.family === family);

function drawCurves() {
  const into = find("curve-charts");
  forget(into);
  const families = [...new Set(results.rows.map(row => row.family))];
  for (const family of families) {
    const rows = inFamily(family);
    const byRate = new Set(rows.map(row => row.rate_per_second)).size > 1;
    const loadOf = row => byRate ? row.rate_per_second : row.connections;
    const points = rows.filter(row => isNumber(loadOf(row))).sort((a, b) => loadOf(a) - loadOf(b));
    if (new Set(points.map(loadOf)).size < 2) continue;
    const charts = make("div", "charts");
    into.append(make("h3", "", family), charts);
    const x = { log: true, ticks: [...new Set(points.map(loadOf))], words: value => group(String(value)), label: byRate ? "requests a second asked" : "connections" };
    for (const metric of ["goodput", "server-micros-per-answer", "p99"]) {
      const { name, words, of } = METRICS[metric];
      const series = serversInIt.map(server => {
        const cells = points.map(row => cellAt(server.name, row.name));
        const estimates = cells.map(cell => cell ? of(cell) : null);
        return {
          server: server.name, xs: points.map(loadOf), ys: estimates.map(one => one ? one.median : null),
          bars: estimates.map(one => one ? [one.low, one.high] : null),
          hollow: cells.map(cell => !cell || !ranksIn(cell, metric)),
        };
      }).filter(one => one.ys.some(isNumber));
      if (series.length) chart(charts, name, series, x, { log: metric === "p99", words, fromZero: metric !== "p99" });
    }
  }
  if (!into.children.length) into.append(make("p", "dim", "No two rows differ only by their load, so there is no curve."));
}

// ---- Latency by percentile

function drawPercentiles(rowName) {
  const into = find("percentile-chart");
  forget(into);
  const series = [];
  for (const server of serversInIt) {
    const cell = cellAt(server.name, rowName);
    for (const [spectrum, dash] of [[cell?.spectrum, undefined], [cell?.spectrum_from_send, [6, 5]]]) {
      // The 100th has no place on this axis.
      const points = (spectrum || []).filter(([percentile, value]) => percentile < 100 && value > 0);
      if (!points.length) continue;
      series.push({ server: server.name, dash, xs: points.map(([percentile]) => 1 / (1 - percentile / 100)), ys: points.map(([, value]) => value) });
    }
  }
  if (!series.length) {
    into.append(make("p", "dim", "No cell of this row has enough samples."));
    return;
  }
  const most = Math.max(...series.flatMap(one => one.xs));
  const ticks = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6].filter(value => value <= most * 1.2);
  const percent = value => "p" + Number((100 - 100 / value).toFixed(4));
  chart(into, "latency", series, { log: true, ticks, words: percent, label: "percentile" }, { log: true, words: micros }, { height: 360 });
}

// ---- CPU and memory over time

function drawOverTime(rowName) {
  const into = find("time-charts");
  forget(into);
  const cells = serversInIt.map(server => cellAt(server.name, rowName)).filter(cell => cell?.blocks.some(block => block.samples.length));
  if (!cells.length) {
    into.append(make("p", "dim", "Nothing was sampled in this row."));
    return;
  }
  const blocks = cells.flatMap(cell => cell.blocks);
  const longest = Math.max(...blocks.flatMap(block => block.samples.map(sample => sample.at_seconds)));
  const starts = new Map([...new Set(blocks.map(block => block.block))].sort((a, b) => a - b).map((block, at) => [block, at * (longest + 1)]));
  const restarted = new Set(blocks.filter(block => block.restarted).map(block => block.block));
  const lines = plot => {
    const ratio = devicePixelRatio || 1;
    plot.ctx.save();
    plot.ctx.strokeStyle = plot.ctx.fillStyle = styleColour("--dim");
    plot.ctx.setLineDash([2 * ratio, 3 * ratio]);
    plot.ctx.font = `${11 * ratio}px system-ui`;
    for (const [block, start] of starts) {
      const left = plot.valToPos(start, "x", true);
      plot.ctx.beginPath();
      plot.ctx.moveTo(left, plot.bbox.top);
      plot.ctx.lineTo(left, plot.bbox.top + plot.bbox.height);
      plot.ctx.stroke();
      plot.ctx.fillText(restarted.has(block) ? "R" : "", left + 3 * ratio, plot.bbox.top + 10 * ratio);
    }
    plot.ctx.restore();
  };
  const seriesOfTime = value => cells.map(cell => {
    const xs = [], ys = [];
    for (const block of cell.blocks) {
      for (const sample of block.samples) {
        xs.push(starts.get(block.block) + sample.at_seconds);
        ys.push(value(sample));
      }
      // A line does not run from one block into the next.
      xs.push(starts.get(block.block) + longest + 0.5);
      ys.push(null);
    }
    return { server: cell.server, xs, ys };
  });
  const x = { words: seconds, label: "seconds of load, block after block", range: [0, starts.size * (longest + 1)] };
  const every = Math.max(1, Math.round(longest));
  const draw = { draw: [lines], marksEvery: every };
  chart(into, "server CPU, of the cores it was given", seriesOfTime(sample => sample.server_busy_share), x, { words: share, fromZero: true }, draw);
  chart(into, "server memory (PSS)", seriesOfTime(sample => sample.server_pss_bytes), x, { words: bytes, fromZero: true, incrs: POWERS }, draw);
  chart(into, "goodput", seriesOfTime(sample => sample.good_per_second), x, { words: perSecond, fromZero: true }, draw);
  chart(into, "p99", seriesOfTime(sample => sample.p99_micros), x, { words: micros, log: true }, draw);
}

// ---- The forest of differences

function drawDifferences(metric) {
  const into = find("differences-table");
  const ranked = results.differences.filter(one => one.metric === metric && one.verdict !== "not-ranked");
  const noise = results.noise.filter(one => one.metric === metric);
  const worst = Math.max(0, ...noise.map(one => one.gap));
  // Each row was held against its own noise, where it has one.
  const floorOf = row => noise.find(one => one.row === row)?.gap ?? worst;
  find("differences-about").textContent =
    `Ratio to ${results.method.reference} within blocks, with the 95 % interval; ${metric === "goodput" ? "right" : "left"} is better. ` +
    `The grey band is the noise of the row (${share(worst)} at most): what lies within it is no difference.`;
  if (!ranked.length) {
    into.replaceChildren(make("p", "dim", "No two cells may be compared in this metric."));
    return;
  }
  const low = Math.min(1 / 1.1, ...ranked.map(one => one.ratio.low)), high = Math.max(1.1, ...ranked.map(one => one.ratio.high));
  const ends = [low / 1.04, high * 1.04].map(Math.log);
  const at = ratio => (Math.log(Math.max(ratio, 1e-9)) - ends[0]) / (ends[1] - ends[0]) * 1000;
  const body = make("tbody");
  for (const row of results.rows) {
    const ofRow = ranked.filter(one => one.row === row.name);
    if (!ofRow.length) continue;
    const head = make("th", "", row.name);
    head.colSpan = 4;
    head.scope = "rowgroup";
    body.append(make("tr", "", head));
    for (const one of ofRow) {
      const verdict = { better: "▲ better", worse: "▼ worse", "no-difference-shown": "no difference shown" }[one.verdict];
      body.append(make("tr", "", make("td", "", one.server), make("td", "plot", forestLine(one, at, floorOf(row.name))),
        make("td", "number", changeWithInterval(one.ratio)),
        make("td", one.verdict, verdict)));
    }
  }
  body.append(make("tr", "axis", make("td"), make("td", "plot", forestAxis(ends, at)), make("td"), make("td")));
  into.replaceChildren(make("table", "forest", body));
}

const forestPicture = () => svg("svg", { viewBox: "0 0 1000 22", preserveAspectRatio: "none", "aria-hidden": "true" });

function forestLine(one, at, floor) {
  const picture = forestPicture();
  const colour = seriesColour(seriesOf(one.server)), { median, low, high } = one.ratio;
  const still = { "vector-effect": "non-scaling-stroke" };
  picture.append(
    svg("rect", { class: "band", x: at(1 / (1 + floor)), width: at(1 + floor) - at(1 / (1 + floor)), y: 0, height: 22 }),
    svg("path", { class: "one", d: `M${at(1)} 0V22`, ...still }),
    svg("path", { d: `M${at(low)} 11H${at(high)}M${at(low)} 7V15M${at(high)} 7V15`, stroke: colour, "stroke-width": 2, fill: "none", ...still }),
    // A line of no length with round ends is a dot that the picture's stretching does not bend.
    svg("path", { d: `M${at(median)} 11h0`, stroke: colour, "stroke-width": 9, "stroke-linecap": "round", ...still }));
  return picture;
}

// Text would be bent by the stretching, so the axis' words stand beside the picture, in per cent of its width.
function forestAxis(ends, at) {
  const box = make("div", "axis-words");
  const candidates = [.1, .2, .5, .8, .9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50];
  let last = -1000;
  for (const ratio of [1, ...candidates]) {
    const left = at(ratio);
    if (Math.log(ratio) < ends[0] || Math.log(ratio) > ends[1] || (ratio !== 1 && Math.abs(left - at(1)) < 70) || left - last < 70) {
      if (ratio !== 1 || last !== -1000) continue;
    }
    if (ratio !== 1) last = left;
    const word = make("span", "", ratio === 1 ? "same" : change(ratio));
    word.style.left = left / 10 + "%";
    box.append(word);
  }
  return box;
}
