// When two numbers differ: the rule of the comparison page, without any DOM. The pages that are prepared when
// the site is built follow the same rule, and a test holds both against each other.

/**
 * @typedef {"better" | "worse" | "onlya" | "onlyb" | "unchanged" | "undecided" | "incomparable"} Word
 * @typedef {{median: number | null, low: number | null, high: number | null}} Three
 * @typedef {{word: Word, ratio: number, low: number, high: number, factor: number}} Judged
 * `ratio`, `low` and `high` are logarithms of B over A, NaN where unknown.
 */

/**
 * The ratio of B over A with its interval, on logarithms: the halves that face each other, squared and added.
 * @param {Three} a @param {Three} b
 */
export function ratioOf(a, b) {
  const [am, al, ah] = [a.median, a.low, a.high].map(log);
  const [bm, bl, bh] = [b.median, b.low, b.high].map(log);
  const ratio = bm - am;
  return { ratio, low: ratio - Math.hypot(bm - bl, ah - am), high: ratio + Math.hypot(bh - bm, am - al) };
}

/** @param {number | null} value */
function log(value) {
  return value === null ? NaN : Math.log(value);
}

/**
 * What is said of two numbers that may be compared.
 * @param {Three} a @param {Three} b
 * @param {number} limit threshold as a log-ratio @param {boolean} known whether the series has that threshold
 * @param {boolean} lower whether lower is better
 * @returns {Judged}
 */
export function judge(a, b, limit, known, lower) {
  const { ratio, low, high } = ratioOf(a, b);
  const banded = Number.isFinite(low) && Number.isFinite(high);
  const moved = Math.abs(ratio) > limit && (banded ? low > 0 || high < 0 : known);
  const widest = banded ? Math.max(Math.abs(low), Math.abs(high)) : Math.abs(ratio);
  /** @type {Word} */
  let word = known && widest <= limit ? "unchanged" : "undecided";
  if (moved) word = ratio < 0 === lower ? "better" : "worse";
  return { word, ratio, low, high, factor: Math.abs(ratio) / limit };
}

/** Mean of logarithms with its 95 % interval by Student's t, from three on. @param {number[]} logs */
export function mean(logs) {
  const n = logs.length;
  if (!n) return { mean: NaN, low: NaN, high: NaN, n };
  const middle = logs.reduce((sum, value) => sum + value, 0) / n;
  if (n < 3) return { mean: middle, low: NaN, high: NaN, n };
  const squares = logs.reduce((sum, value) => sum + (value - middle) ** 2, 0);
  const half = student(n - 1) * Math.sqrt(squares / (n - 1) / n);
  return { mean: middle, low: middle - half, high: middle + half, n };
}

/** The 97.5 % quantile of Student's t: closed forms, then Hill's expansion. @param {number} freedom */
export function student(freedom) {
  if (freedom === 1) return Math.tan(Math.PI * 0.475);
  if (freedom === 2) return 0.95 * Math.sqrt(2 / (1 - 0.95 ** 2));
  const z = 1.959963985;
  return (
    z +
    (z ** 3 + z) / (4 * freedom) +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2) +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * freedom ** 3) +
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / (92160 * freedom ** 4)
  );
}

/**
 * Why a case has no ratio.
 * @param {string} a what its side lacks, empty where it passed @param {string} b @param {boolean} numberOnA
 * @param {boolean} alike
 */
export function reason(a, b, numberOnA, alike) {
  if (a && a === b) return `${a} on both`;
  if (a || b) return [a && `${a} on A`, b && `${b} on B`].filter(Boolean).join(", ");
  if (!alike) return "built differently";
  return `no number on ${numberOnA ? "B" : "A"}`;
}
