// Numbers as text, digit for digit as the pages have them: pages/number_text.py and results/units.py say the same.

const MINUS = "−";

/**
 * `value` with so many decimals and its thousands apart: the exact number rounded once, a tie to the even digit.
 * @param {number} value @param {number} decimals
 */
export function fixed(value, decimals) {
  const size = Math.abs(value);
  let text = size.toFixed(decimals);
  const longer = size.toFixed(decimals + 1);
  if (longer.endsWith("5") && Number(longer) === size && /^0*$/.test(size.toFixed(100).slice(longer.length)) && /[13579]$/.test(text)) {
    text = longer.slice(0, decimals ? -1 : -2); // toFixed takes the larger one of two that are as near
  }
  const [whole, part] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? `.${part}` : "");
  return value < 0 ? `-${grouped}` : grouped;
}

/** The exponent of the first significant digit. @param {number} value */
function magnitude(value) {
  return value ? Number(Math.abs(value).toExponential().split("e")[1]) : 0;
}

/** @param {number} value as many digits as its interval warrants @param {number | null} half in percent */
export function digits(value, half) {
  const wanted = half !== null && half < 1 ? 4 : 3;
  return fixed(value, Math.max(0, wanted - 1 - (value > 0 ? magnitude(value) : 0)));
}

/** Half of an interval. @param {number | null} half in percent */
export function spread(half) {
  if (half === null) return "n<6";
  if (half > 999) return "±>999%";
  if (half >= 10) return `±${fixed(half, 0).replaceAll(",", "")}%`;
  const shown = half >= 1 ? fixed(half, 1) : half >= 0.001 ? fixed(half, -magnitude(half)) : "0";
  return `±${Number(shown)}%`;
}

/** Half of the interval of a ratio of two independent numbers. @param {number | null} a @param {number | null} b */
export function together(a, b) {
  return a === null || b === null ? null : Math.hypot(a, b);
}

/** A ratio, new over old, as it is shown: above 1 is better. `results/gain.py` has the same rule. @param {number} ratio @param {string} better */
export function gain(ratio, better) {
  return better === "lower" ? 1 / ratio : ratio;
}

/** A ratio as a change in percent with its sign. @param {number} ratio @param {number | null} [half] in percent */
export function change(ratio, half = null) {
  const percent = 100 * (ratio - 1);
  const decimals = half !== null && half < 0.1 ? 2 : Math.abs(percent) < 100 ? 1 : 0;
  const text = fixed(Math.abs(percent), decimals);
  return `${/[1-9]/.test(text) ? (percent < 0 ? MINUS : "+") : ""}${text}%`;
}

/** @type {[number, string][]} */
const SI = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const si = (/** @type {string} */ unit) => /** @type {[number, string][]} */ (SI.map(([factor, prefix]) => [factor, ` ${prefix}${unit}`]));
/** @type {Record<string, [number, string][]>} */
const SCALES = {
  s: [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]],
  B: [[2 ** 40, " TiB"], [2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"], [1, " B"]],
  FLOP: si("FLOP"), "FLOP/s": si("FLOP/s"), "B/s": si("B/s"), share: [[0.01, "%"]],
};
const WHOLE = new Set(["count", "parameters"]);
/** Below this a number is written with an exponent: its decimals would be zeros, and look like none. */
const SMALLEST = 1e-10;

/** Three significant digits of any size. @param {number} value */
const smallNumber = (value) => String(Number(value.toPrecision(3)));

/** What a value is divided by, and what stands after it. @param {number} value @param {string} unit @returns {[number, string]} */
export function scale(value, unit) {
  const scales = SCALES[unit];
  if (scales && value !== 0) return scales.find(([factor]) => Math.abs(value) >= factor * 0.9995) ?? scales[scales.length - 1];
  return [1, unit === "ratio" ? "x" : unit === "share" || unit === "%" ? "%" : WHOLE.has(unit) ? "" : ` ${unit}`];
}

/**
 * A number and its interval apart, such as `12.3 ms` and `[12.1, 12.6]`; the second is empty where an end is missing.
 * @param {number} value @param {number | null} low @param {number | null} high @param {string} unit
 * @returns {[string, string]}
 */
export function parts(value, low, high, unit) {
  const [factor, suffix] = scale(value, unit);
  const scaled = value / factor;
  if (value !== 0 && Math.abs(scaled) < SMALLEST) {
    const ends = low === null || high === null ? "" : `[${smallNumber(low / factor)}, ${smallNumber(high / factor)}]`;
    return [smallNumber(scaled) + suffix, ends];
  }
  let wanted = 3;
  if (low !== null && high !== null && high > low && value) {
    const sharpness = Math.abs(value) / (high - low);
    if (sharpness > 0 && sharpness < Infinity) wanted = Math.min(6, Math.max(3, Math.ceil(Math.log10(sharpness)) + 1));
  }
  const whole = WHOLE.has(unit) && Number.isInteger(scaled);
  const decimals = whole ? 0 : Math.max(0, Math.min(12, wanted - 1 - magnitude(scaled)));
  const text = fixed(scaled, decimals) + suffix;
  return [text, low === null || high === null ? "" : `[${fixed(low / factor, decimals)}, ${fixed(high / factor, decimals)}]`];
}

/**
 * A number with its interval, such as `12.3 ms [12.1, 12.6]`.
 * @param {number} value @param {number | null} low @param {number | null} high @param {string} unit
 */
export function quantity(value, low, high, unit) {
  return parts(value, low, high, unit).filter(Boolean).join(" ");
}

/**
 * A number as it is shown where the mark `doubt` keeps it apart: an unsteady one is rough, and each says its mark.
 * @param {number} value @param {number | null} low @param {number | null} high @param {string} unit @param {string} doubt
 */
export function told(value, low, high, unit, doubt) {
  if (!doubt) return quantity(value, low, high, unit);
  const [exact, between] = parts(value, low, high, unit);
  return [doubt === "unsteady" ? rough(value, unit) : exact, between, `· ${doubt}`].filter(Boolean).join(" ");
}

/** A number in words and with two digits. @param {number} value @param {string} unit */
function rough(value, unit) {
  const [factor, suffix] = scale(value, unit);
  const decimals = 1 - magnitude(value / factor);
  const step = 10 ** Math.max(0, -decimals);
  const shown = Number(fixed(value / factor / step, Math.max(0, decimals)).replaceAll(",", "")) * step;
  return `about ${fixed(shown, Math.max(0, decimals))}${suffix}`;
}
