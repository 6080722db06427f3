// The words of the query language, how a name is matched, and the mistake that is told.

/** @typedef {(text: string) => boolean} Glob */

/** Names of statuses, and the letters of the cells that have them. @type {Readonly<Record<string, string>>} */
export const STATUSES = Object.freeze({
  pass: "p", partial: "q", fail_accuracy: "a", acc: "a", error: "e", err: "e", crash: "c", oom: "o", timeout: "t",
  "t/o": "t", unsupported: "u", "n/a": "u", skipped: "s", skip: "s", infra: "i", not_run: "n", none: ".",
  fail: "aecot",
});
export const MARKS = Object.freeze(["new", "unexpected", "expected", "other_cause", "degraded", "other_model", "unchecked", "unsteady", "faster_than_peak", "leaks", "ties", "flaky", "contributed", "imported", "stale", "superseded"]);
export const FIELDS = Object.freeze(["suite", "model", "mode", "dtype", "batch", "device", "config", "status"]);
export const FUNCTIONS = Object.freeze(["and", "or", "not", "cell", "every", "count", "seq"]);
/** @type {Record<string, Record<string, number>>} */
export const UNITS = {
  s: { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9, min: 60 },
  B: { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, kb: 1e3, mb: 1e6, gb: 1e9 },
  ratio: { x: 1, "%": 0.01 },
};

export class QueryError extends Error {
  /** @param {string} message @param {number} at where in the query, counted from 0 */
  constructor(message, at) {
    super(message);
    this.name = "QueryError";
    this.at = at;
  }
}

/**
 * A test for `pattern`, in which `*` stands for any characters; case does not matter.
 * @param {string} pattern
 * @returns {Glob}
 */
export function glob(pattern) {
  const [first, ...rest] = pattern.toLowerCase().split("*");
  if (rest.length === 0) return (text) => text.toLowerCase() === first;
  const last = /** @type {string} */ (rest.pop());
  return (text) => {
    const low = text.toLowerCase();
    if (!low.startsWith(first)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = low.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return low.length - last.length >= at && low.endsWith(last);
  };
}
