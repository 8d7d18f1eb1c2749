// Figures for people. Each takes a number, or null where there is none.

const NONE = "–";

// As many digits as matter: 0, 0.25, 7, 12.3, 999, 12.3 k, 1.50 M …
export function count(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return NONE;
  const large = Math.abs(n);
  if (large < 1e4) return digits(n);
  for (const [unit, size] of [["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]]) {
    if (large < size * 999.5 || unit === "T") return `${digits(n / size)} ${unit}`;
  }
  return NONE;
}

function digits(n) {
  const large = Math.abs(n);
  if (Number.isInteger(n) || large >= 99.95) return n.toFixed(0);
  return large >= 9.995 ? n.toFixed(1) : n.toFixed(2);
}

export const perSecond = n => (n === null || n === undefined ? NONE : `${count(n)}/s`);

export function bytes(n) {
  if (n === null || n === undefined) return NONE;
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (n < 1023.5 || unit === "TiB") return `${unit === "B" ? n.toFixed(0) : digits(n)} ${unit}`;
    n /= 1024;
  }
  return NONE;
}

export const bytesPerSecond = n => (n === null || n === undefined ? NONE : `${bytes(n)}/s`);

export function micros(n) {
  if (n === null || n === undefined) return NONE;
  if (n < 1e3) return `${n.toFixed(0)} µs`;
  if (n < 999_500) return `${digits(n / 1e3)} ms`;
  return `${digits(n / 1e6)} s`;
}

export const percent = n => (n === null || n === undefined ? NONE : `${n.toFixed(1)} %`);

// A length of time in seconds.
export function span(s) {
  if (s < 120) return `${Math.floor(s)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  return s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} days`;
}

// A moment in seconds since 1970, as clocks here show it.
export function timeOfDay(at, withSeconds = true) {
  const date = new Date(at * 1000);
  const parts = [date.getHours(), date.getMinutes(), ...(withSeconds ? [date.getSeconds()] : [])];
  return parts.map(part => String(part).padStart(2, "0")).join(":");
}
