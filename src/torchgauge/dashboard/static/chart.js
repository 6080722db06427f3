// Charts: plotly.js is loaded when the first of them comes into view. A line is broken where a number is
// missing and the gap is shaded; the interval is a band; behind every chart stands its table.

import { choice, complaint, element, load, manifest, root, visible } from "./data.js";
import { scale, told } from "./number_text.js";

/**
 * @typedef {{name: string, median: (number | null)[], low?: (number | null)[], high?: (number | null)[],
 *   beside?: string[], doubts?: string[], rebuilt?: number[], link?: (place: number, before: number) => string}} Line
 * Values by the place of a snapshot; `beside` is text that stands with each, `doubts` the mark that keeps a number
 * apart, empty where none does, `rebuilt` places at which another model begins, `link` where a point leads.
 * @typedef {{title: string, snapshots: import("./data.js").Snapshot[], lines: Line[], unit: string,
 *   breaks?: number[], fromZero?: boolean, one?: boolean, exact?: boolean}} Chart
 * `breaks` are places at which a line begins anew; `one` draws the line of "no change"; `exact` are counts, which have
 * no interval: any other number without one is not drawn.
 */

const MOST_SHOWN = 8;
/** Lines of a chart whose intervals are bands: more bands hide one another, and only the newest intervals are drawn. */
const MOST_BANDS = 2;
const DASHES = ["solid", "dash", "dot", "dashdot"];

/** @type {Promise<any> | undefined} */
let library;

/** plotly.js, loaded once, pinned by its digest. @returns {Promise<any>} */
function plotly() {
  library ??= manifest().then(
    ({ plotly: bundle }) =>
      new Promise((resolve, reject) => {
        const script = element("script", { src: new URL(bundle.file, root).href, integrity: bundle.integrity });
        script.addEventListener("load", () => resolve(/** @type {any} */ (window).Plotly));
        script.addEventListener("error", () => {
          library = undefined;
          reject(new Error(`${bundle.file} cannot be loaded, or differs from the built file: the table contains the data.`));
        });
        document.head.append(...bundle.own_styles.map((id) => element("meta", { id })), script);
      }),
  );
  return library;
}

/** Text for plotly, which reads a little HTML, templates such as `%{x}`, and formulas. @param {string} text */
export function escaped(text) {
  return visible(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%\{/g, "%&#123;").replace(/\$/g, "&#36;");
}

/** Begin to load plotly.js: a chart was asked for and its data are on their way. */
export function prepare() {
  plotly().catch(() => undefined);
}

/** @type {Map<HTMLElement, () => void>} */
const drawn = new Map();
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
  matchMedia(query).addEventListener("change", () => {
    colours.clear();
    drawn.forEach((draw) => draw());
  });
}

/** Charts are drawn one after the other, each with a frame of its own, so that the first is there soon. */
let turn = Promise.resolve();

/** @param {() => Promise<void>} draw */
function inTurn(draw) {
  turn = turn.then(draw).then(() => new Promise((resolve) => setTimeout(resolve)));
  return turn;
}

const seen = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      entry.target.dispatchEvent(new Event("chart-seen"));
    }
  },
  { rootMargin: "100px" },
);

/**
 * A figure that draws itself when it comes into view, with its table beneath.
 * @param {Chart} chart
 * @returns {HTMLElement}
 */
export function figure(chart) {
  const { sure, bare } = drawable(chart);
  const plot = element("div", { class: "plot", role: "img", "aria-label": words(chart) });
  plot.append(element("p", { class: "muted" }, "Loading the chart …"));
  const caption = element("figcaption", {}, visible(chart.title));
  const table = element("details", {}, element("summary", {}, "The data as a table"));
  table.addEventListener("toggle", () => {
    if (table.open && table.children.length === 1) table.append(tableOf(chart));
  });
  if (!sure.lines.length) {
    table.open = true;
    const why = "Not drawn: these numbers have no interval (fewer than six samples). The table contains them.";
    return element("figure", { class: "chart-figure" }, caption, element("p", { class: "muted" }, why), table);
  }
  const crowded = sure.lines.length > MOST_BANDS && sure.lines.some(({ low }) => low);
  const notes = [
    crowded ? "The whisker of the newest point is its 95 % interval. Choose one configuration to see the band of all points." : "",
    bare ? `${bare} numbers without an interval are not drawn. The table contains them.` : "",
  ];
  const left = notes.filter(Boolean).map((note) => element("p", { class: "muted" }, note));
  const found = element("figure", { class: "chart-figure" }, caption, plot, ...left, table);
  plot.addEventListener("chart-seen", async () => {
    try {
      const Plotly = await plotly();
      await inTurn(async () => {
        if (!plot.isConnected) return;
        plot.replaceChildren();
        drawn.set(plot, () => paint(Plotly, plot, sure));
        await paint(Plotly, plot, sure);
        follow(plot, sure);
        plot.dataset.ready = "true";
      });
    } catch (error) {
      turn = Promise.resolve();
      plot.replaceChildren(complaint(error));
      plot.removeAttribute("role");
      table.open = true;
    }
  });
  requestAnimationFrame(() => seen.observe(plot));
  return found;
}

/** The chart without the numbers that have no interval, and how many these are. @param {Chart} chart */
function drawable(chart) {
  if (chart.exact) return { sure: chart, bare: 0 };
  let bare = 0;
  const lines = chart.lines.map((line) => {
    const median = line.median.map((value, place) => {
      if (value === null || (typeof line.low?.[place] === "number" && typeof line.high?.[place] === "number")) return value;
      bare += 1;
      return null;
    });
    return { ...line, median };
  });
  return { sure: { ...chart, lines: lines.filter(({ median }) => median.some((value) => value !== null)) }, bare };
}

/** Forget what was drawn in `host` before it is filled anew. @param {HTMLElement} host */
export function clear(host) {
  for (const plot of host.querySelectorAll(".plot")) {
    const node = /** @type {HTMLElement} */ (plot);
    seen.unobserve(node);
    if (drawn.delete(node)) /** @type {any} */ (window).Plotly?.purge(node);
  }
  host.replaceChildren();
}

/** @param {Chart} chart */
function words(chart) {
  const dates = chart.snapshots;
  const range = dates.length ? ` from ${dates[0].date} to ${dates[dates.length - 1].date}` : "";
  return visible(`${chart.title}: ${chart.lines.length} lines${range}; the table below contains the numbers`);
}

/** Colours by their names, until the scheme changes. @type {Map<string, string>} */
const colours = new Map();

/** A colour of the page as plotly wants it, also a system colour. @param {HTMLElement} host @param {string} name */
function colour(host, name) {
  const known = colours.get(name);
  if (known) return known;
  const probe = element("span");
  probe.style.color = `var(${name})`;
  host.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  colours.set(name, found);
  return found;
}

/** @param {string} text `rgb(…)` @param {number} alpha */
function faded(text, alpha) {
  const [r, g, b] = text.match(/[\d.]+/g) ?? ["128", "128", "128"];
  return `rgba(${r},${g},${b},${alpha})`;
}

/** Places of each unbroken stretch of a line. @param {Line} line @param {number[]} breaks @returns {number[][]} */
function stretches(line, breaks) {
  /** @type {number[][]} */
  const found = [];
  let last = -2;
  line.median.forEach((value, place) => {
    if (value === null || line.doubts?.[place]) return;
    if (place !== last + 1 || breaks.includes(place)) found.push([]);
    found[found.length - 1].push(place);
    last = place;
  });
  return found;
}

/** @param {any} Plotly @param {HTMLElement} plot @param {Chart} chart */
function paint(Plotly, plot, chart) {
  const largest = largestOf(chart);
  const [factor, unit] = scale(largest, chart.unit);
  const ink = colour(plot, "--ink");
  const muted = colour(plot, "--muted");
  const traces = chart.lines.flatMap((line, number) => traced(plot, chart, line, number, factor));
  const ticks = places(chart.snapshots.length, plot.clientWidth < 500 ? 3 : 6);
  const layout = {
    margin: { l: 58, r: 40, t: 8, b: 34 },
    height: 340,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12, family: "system-ui, sans-serif" },
    hovermode: "closest",
    hoverlabel: { bgcolor: colour(plot, "--head"), bordercolor: muted, font: { color: ink } },
    showlegend: chart.lines.length > 1,
    legend: { orientation: "h", y: -0.14, font: { color: ink } },
    xaxis: {
      range: [-0.5, chart.snapshots.length - 0.5],
      tickvals: ticks,
      ticktext: ticks.map((place) => escaped(chart.snapshots[place].date)),
      showgrid: false,
      zeroline: false,
      linecolor: muted,
      tickcolor: muted,
    },
    yaxis: {
      ticksuffix: escaped(unit),
      rangemode: chart.fromZero ? "tozero" : "normal",
      gridcolor: faded(muted, 0.25),
      zeroline: false,
      automargin: true,
    },
    shapes: shapes(chart, muted),
  };
  const config = {
    showSendToCloud: false,
    plotlyServerURL: "",
    displaylogo: false,
    displayModeBar: false,
    responsive: true,
    doubleClickDelay: 400,
  };
  return Plotly.react(plot, traces, layout, config);
}

/** The largest number that counts, or of all where none does. @param {Chart} chart */
function largestOf(chart) {
  const all = chart.lines.flatMap((line) => line.median.map((value, place) => ({ value: value ?? 0, doubt: line.doubts?.[place] })));
  const sure = all.filter(({ doubt }) => !doubt);
  return Math.max(0, ...(sure.some(({ value }) => value) ? sure : all).map(({ value }) => value));
}

/**
 * Numbers in doubt as hollow marks that no line joins; one far above all others stands at the upper edge as an
 * arrow, so that it does not flatten what counts.
 * @param {HTMLElement} plot @param {Chart} chart @param {Line} line @param {number} number @param {number} factor
 */
function doubted(plot, chart, line, number, factor) {
  const places = line.median.flatMap((value, place) => (value !== null && line.doubts?.[place] ? [place] : []));
  const edge = 1.1 * largestOf(chart);
  const value = (/** @type {number} */ place) => /** @type {number} */ (line.median[place]);
  const reach = (/** @type {(number | null)[] | undefined} */ side) =>
    places.map((place) => (value(place) > edge ? 0 : Math.abs((side?.[place] ?? value(place)) - value(place)) / factor));
  const found = {
    type: "scatter", mode: "markers", x: places, y: places.map((place) => Math.min(value(place), edge) / factor),
    text: places.map((place) => hover(chart, line, place)), customdata: places, hoverinfo: "text", name: escaped(line.name),
    legendgroup: `line ${number}`, showlegend: false, visible: number < MOST_SHOWN ? true : "legendonly", meta: number,
    error_y: { type: "data", symmetric: false, array: reach(line.high), arrayminus: reach(line.low), thickness: 1, width: 4 },
    marker: {
      color: colour(plot, `--series-${(number % 8) + 1}`), size: 9,
      symbol: places.map((place) => (value(place) > edge ? "arrow-up-open" : "circle-open")),
    },
  };
  return places.length ? [found] : [];
}

/** @param {HTMLElement} plot @param {Chart} chart @param {Line} line @param {number} number @param {number} factor */
function traced(plot, chart, line, number, factor) {
  const stroke = colour(plot, `--series-${(number % 8) + 1}`);
  const shown = number < MOST_SHOWN ? true : "legendonly";
  /** @type {(number | null)[]} */
  const x = [], y = [], bandX = [], bandY = [];
  /** @type {string[]} */
  const text = [];
  /** @type {(number | null)[]} */
  const at = [];
  const { low, high } = line;
  for (const stretch of stretches(line, [...(chart.breaks ?? []), ...(line.rebuilt ?? [])])) {
    for (const place of stretch) {
      x.push(place);
      y.push(/** @type {number} */ (line.median[place]) / factor);
      text.push(hover(chart, line, place));
      at.push(place);
    }
    x.push(null);
    y.push(null);
    text.push("");
    at.push(null);
    if (!low || !high || chart.lines.length > MOST_BANDS) continue;
    const edge = (/** @type {(number | null)[]} */ side, /** @type {number} */ place) => (side[place] ?? line.median[place] ?? 0) / factor;
    const back = [...stretch].reverse();
    bandX.push(...stretch, ...back, stretch[0], null);
    bandY.push(...stretch.map((p) => edge(high, p)), ...back.map((p) => edge(low, p)), edge(high, stretch[0]), null);
  }
  const name = escaped(line.name);
  const band = {
    type: "scatter", mode: "lines", x: bandX, y: bandY, fill: "toself", fillcolor: faded(stroke, 0.2),
    line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: `line ${number}`, visible: shown, name,
  };
  const main = {
    type: "scatter", mode: chart.snapshots.length > 100 ? "lines" : "lines+markers", x, y, text, customdata: at,
    hoverinfo: "text", name, legendgroup: `line ${number}`, visible: shown, connectgaps: false, meta: number,
    line: { color: stroke, width: 1.8, dash: DASHES[Math.floor(number / 8) % DASHES.length] },
    marker: { color: stroke, size: 4 },
    error_y: chart.lines.length > MOST_BANDS && low && high ? newestInterval(line, at, factor) : undefined,
  };
  return [...(bandX.length ? [band] : []), main, ...doubted(plot, chart, line, number, factor)];
}

/** The interval of the last point alone, as a whisker. @param {Line} line @param {(number | null)[]} at @param {number} factor */
function newestInterval(line, at, factor) {
  const last = Math.max(...at.map((place) => place ?? -1));
  const reach = (/** @type {(number | null)[] | undefined} */ side) => at.map((place) =>
    (place === last ? Math.abs((side?.[place] ?? line.median[place] ?? 0) - (line.median[place] ?? 0)) / factor : NaN));
  return { type: "data", symmetric: false, array: reach(line.high), arrayminus: reach(line.low), thickness: 1, width: 4 };
}

/** @param {Chart} chart @param {Line} line @param {number} place */
function hover(chart, line, place) {
  const snapshot = chart.snapshots[place];
  const value = told(/** @type {number} */ (line.median[place]), line.low?.[place] ?? null, line.high?.[place] ?? null, chart.unit, line.doubts?.[place] ?? "");
  const beside = line.beside?.[place];
  const parts = [line.name, `${snapshot.date} · torch ${snapshot.torch_version || "?"}`, value, ...(beside ? [beside] : [])];
  return parts.map(escaped).join("<br>") + (linkOf(line, place) ? "<br>click: compare with the previous one" : "");
}

/** Gaps of all lines together shaded, epochs divided, and the line of no change. @param {Chart} chart @param {string} muted */
function shapes(chart, muted) {
  const found = [];
  const count = chart.snapshots.length;
  for (let place = 0; place < count; place += 1) {
    if (chart.lines.some((line) => line.median[place] !== null)) continue;
    let end = place;
    while (end + 1 < count && chart.lines.every((line) => line.median[end + 1] === null)) end += 1;
    found.push({
      type: "rect", xref: "x", yref: "paper", x0: place - 0.5, x1: end + 0.5, y0: 0, y1: 1,
      fillcolor: faded(muted, 0.18), line: { width: 0 }, layer: "below",
    });
    place = end;
  }
  for (const place of [...(chart.breaks ?? []), ...chart.lines.flatMap((line) => line.rebuilt ?? [])]) {
    found.push({
      type: "line", xref: "x", yref: "paper", x0: place - 0.5, x1: place - 0.5, y0: 0, y1: 1,
      line: { color: muted, width: 1, dash: "dot" }, layer: "below",
    });
  }
  if (chart.one) {
    found.push({
      type: "line", xref: "paper", yref: "y", x0: 0, x1: 1, y0: 1, y1: 1,
      line: { color: muted, width: 1 }, layer: "below",
    });
  }
  return found;
}

/** Evenly spaced places. @param {number} count @param {number} most @returns {number[]} */
function places(count, most) {
  const wanted = Math.min(count, most);
  const found = Array.from({ length: wanted }, (_, i) => Math.round((i * (count - 1)) / Math.max(1, wanted - 1)));
  return [...new Set(found)];
}

/** Where a click on a point leads. @param {HTMLElement} plot @param {Chart} chart */
function follow(plot, chart) {
  /** @type {any} */ (plot).on("plotly_click", (/** @type {any} */ event) => {
    const point = event.points[0];
    const line = chart.lines[point.data.meta];
    const href = line && linkOf(line, point.customdata);
    if (href) window.location.href = href;
  });
}

/** @param {Line} line @param {number} place */
function linkOf(line, place) {
  const before = line.median.findLastIndex((value, i) => i < place && value !== null && !line.doubts?.[i]);
  return line.link && before >= 0 && !line.doubts?.[place] ? line.link(place, before) : "";
}

/** @param {Chart} chart */
function tableOf(chart) {
  const head = element("tr", {}, element("th", { scope: "col" }, "snapshot"));
  for (const line of chart.lines) head.append(element("th", { scope: "col", class: "num" }, visible(line.name)));
  const body = element("tbody");
  for (let place = chart.snapshots.length - 1; place >= 0; place -= 1) {
    const snapshot = chart.snapshots[place];
    const row = element("tr", {}, element("th", { scope: "row", class: "nowrap" }, visible(snapshot.id)));
    for (const line of chart.lines) row.append(cellOf(chart, line, place));
    body.append(row);
  }
  const table = element("table", { class: "plain" }, element("thead", {}, head), body);
  return element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": visible(chart.title) }, table);
}

/** @param {Chart} chart @param {Line} line @param {number} place */
function cellOf(chart, line, place) {
  const value = line.median[place];
  const beside = line.beside?.[place] ?? "";
  if (value === null) return element("td", { class: "num muted" }, beside || "no number");
  const doubt = line.doubts?.[place] ?? "";
  const text = told(value, line.low?.[place] ?? null, line.high?.[place] ?? null, chart.unit, doubt);
  if (doubt) return element("td", { class: "num doubt" }, text);
  const href = linkOf(line, place);
  const shown = href ? element("a", { href, title: "compare with the previous one" }, text) : text;
  return element("td", { class: "num" }, shown, beside ? ` · ${beside}` : "");
}

/**
 * The address of a comparison of two snapshots.
 * @param {string} a @param {string} b @param {string} device its id @param {string} configuration @param {string} metric
 */
export function compareLink(a, b, device, configuration, metric) {
  const url = new URL("compare.html", root);
  url.search = new URLSearchParams({ a, b, ad: device, bd: device, ac: configuration, bc: configuration, metric }).toString();
  return url.href;
}

/**
 * @typedef {{device: string, snapshots: string[], cases: {case: number, variant: string, configuration: string,
 *   status: string, marks: Record<string, number[]>, metrics: Record<string, {median: (number | null)[], low?: (number | null)[], high?: (number | null)[]}>}[]}} Series
 */

/** The charts of a model's page: every device and configuration of one of its workloads. @param {HTMLElement} host */
async function modelChart(host) {
  const files = (host.dataset.series ?? "").split(" ").filter(Boolean).map((href) => new URL(href, window.location.href).href);
  if (!files.length) return;
  const [site, ...series] = /** @type {[import("./data.js").Manifest, ...Series[]]} */ (
    await Promise.all([manifest(), ...files.map(load)])
  );
  const wanted = new Set(series.flatMap((one) => one.snapshots));
  const snapshots = site.snapshots.filter((snapshot) => wanted.has(snapshot.id));
  const variants = [...new Set(series.flatMap((one) => one.cases.map((c) => c.variant)))];
  const there = new Set(series.flatMap((one) => one.cases.flatMap((c) => Object.keys(c.metrics))));
  const metrics = site.metrics.filter((metric) => there.has(metric.name));
  if (!variants.length || !metrics.length) return host.replaceChildren(element("p", { class: "muted" }, "No numbers to draw."));
  const chosen = { variant: variants[0], metric: metrics.some((m) => m.name === host.dataset.metric) ? host.dataset.metric ?? "" : metrics[0].name };
  const body = element("div");
  const show = () => {
    clear(body);
    const unit = metrics.find((metric) => metric.name === chosen.metric)?.unit ?? "";
    const lines = modelLines(site, series, snapshots, chosen.variant, chosen.metric);
    body.append(figure({ title: `${chosen.metric.replaceAll("_", " ")}, ${chosen.variant}`, snapshots, lines, unit }));
  };
  const bar = element("div", { class: "controls" });
  if (variants.length > 1) {
    bar.append(choice("workload", variants.map((value) => ({ value, text: value })), chosen.variant, (value) => { chosen.variant = value; show(); }));
  }
  bar.append(choice("metric", metrics.map(({ name }) => ({ value: name, text: name.replaceAll("_", " ") })), chosen.metric, (value) => { chosen.metric = value; show(); }));
  host.replaceChildren(bar, body);
  show();
}

/**
 * @param {import("./data.js").Manifest} site @param {Series[]} series @param {import("./data.js").Snapshot[]} snapshots
 * @param {string} variant @param {string} metric @returns {Line[]}
 */
function modelLines(site, series, snapshots, variant, metric) {
  const ids = new Map(site.devices.map(({ id, name }) => [name, id]));
  const codes = new Map(site.statuses.map(({ letter, code }) => [letter, code]));
  const place = new Map(snapshots.map((snapshot, i) => [snapshot.id, i]));
  const doubts = site.metrics.find(({ name }) => name === metric)?.doubts ?? [];
  /** @type {Map<string, Line & {low: (number | null)[], high: (number | null)[], beside: string[], doubts: string[], rebuilt: number[]}>} */
  const found = new Map();
  const blank = () => /** @type {(number | null)[]} */ (snapshots.map(() => null));
  for (const one of series) {
    for (const item of one.cases) {
      if (item.variant !== variant) continue;
      const name = `${one.device} · ${item.configuration}`;
      const device = ids.get(one.device) ?? "";
      const line = found.get(name) ?? {
        name, median: blank(), low: blank(), high: blank(), beside: snapshots.map(() => "not planned"), doubts: snapshots.map(() => ""), rebuilt: [],
        link: (at, before) => compareLink(snapshots[before].id, snapshots[at].id, device, item.configuration, metric),
      };
      found.set(name, line);
      const numbers = item.metrics[metric];
      one.snapshots.forEach((id, i) => {
        const at = place.get(id);
        if (at === undefined) return;
        const status = item.status[i];
        line.beside[at] = status === "p" ? "" : codes.get(status) ?? "not planned";
        line.median[at] = numbers?.median[i] ?? null;
        if (item.marks.rebuilt?.includes(i)) {
          line.rebuilt.push(at);
          line.beside[at] = [line.beside[at], "the model changed at the dotted line"].filter(Boolean).join(", ");
        }
        line.doubts[at] = doubts.find((mark) => item.marks[mark]?.includes(i)) ?? "";
        line.low[at] = numbers?.low?.[i] ?? null;
        line.high[at] = numbers?.high?.[i] ?? null;
      });
    }
  }
  return [...found.values()].filter((line) => line.median.some((value) => value !== null));
}

for (const node of document.querySelectorAll('[data-chart="model"]')) {
  const host = /** @type {HTMLElement} */ (node);
  if (!host.childNodes.length) host.append(element("p", { class: "muted" }, "The chart loads when it comes into view."));
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    modelChart(host).catch((error) => host.replaceChildren(complaint(error)));
  });
  watch.observe(host);
}
