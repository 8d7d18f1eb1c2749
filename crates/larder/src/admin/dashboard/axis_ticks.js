// Where an axis has its lines, and what stands beside them: no two say the same, at whatever magnitude.

const DECIMAL = ["", " k", " M", " G", " T", " P"];
const BINARY = [" B", " KiB", " MiB", " GiB", " TiB", " PiB"];

// From 0 to at least `top`, in at most five steps. `isBytes`: they are powers of two.
export function linearTicks(top, isBytes) {
  const largest = top > 0 && Number.isFinite(top) ? top : 1;
  const base = isBytes ? 1024 : 1000;
  const units = isBytes ? BINARY : DECIMAL;
  let step = isBytes ? Math.max(2 ** Math.ceil(Math.log2(largest / 5)), 1) : niceStep(largest / 5);
  const steps = Math.max(1, Math.ceil(largest / step - 1e-9));
  const end = steps * step;
  const power = Math.min(Math.max(Math.floor(Math.log(end) / Math.log(base) + 1e-9), 0), units.length - 1);
  const size = base ** power;
  const decimals = decimalsOf(step / size);
  const ticks = [];
  for (let at = 0; at <= steps; at++) {
    const value = at * step;
    ticks.push({ value, label: value === 0 ? "0" : (value / size).toFixed(decimals) + units[power] });
  }
  return ticks;
}

// 1, 2 or 5 times a power of ten.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find(factor => factor * power >= least * (1 - 1e-9));
  return factor * power;
}

function decimalsOf(step) {
  let decimals = 0;
  while (decimals < 12 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-9 * 10 ** decimals) decimals++;
  return decimals;
}

// Decades of microseconds around what is shown, one at least.
export function logTicks(bottom, top) {
  const low = Math.floor(Math.log10(Math.max(bottom || 1, 1)));
  const high = Math.max(Math.ceil(Math.log10(Math.max(top || 1, 1))), low + 1);
  const ticks = [];
  for (let power = low; power <= high; power++) ticks.push({ value: 10 ** power, label: decade(power) });
  return ticks;
}

function decade(power) {
  const unit = [" µs", " ms", " s"][Math.min(Math.floor(power / 3), 2)];
  const value = 10 ** (power - Math.min(Math.floor(power / 3), 2) * 3);
  return (value < 10000 ? String(value) : `${value / 1000} k`) + unit;
}

const TIME_STEPS = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400];

// Full minutes and hours of the clock here between two moments, `most` of them at most.
export function timeTicks(from, to, most) {
  const step = TIME_STEPS.find(step => (to - from) / step <= most) || TIME_STEPS[TIME_STEPS.length - 1];
  const ahead = -new Date(to * 1000).getTimezoneOffset() * 60;
  const ticks = [];
  for (let at = Math.ceil((from + ahead) / step) * step - ahead; at <= to; at += step) ticks.push(at);
  return { step, ticks };
}
