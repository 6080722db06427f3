// The page of comparisons: two sides, each a snapshot, a device and a configuration; one address for each view.

import { choice, complaint, element, load, manifest, visible } from "./data.js";
import { fixed, gain, parts, told } from "./number_text.js";
import { judge, mean, reason } from "./contrast.js";
import { commit, follow, read } from "./state.js";

/**
 * @typedef {import("./data.js").Manifest} Manifest
 * @typedef {import("./contrast.js").Word} Word
 * @typedef {import("./contrast.js").Three} Three
 * @typedef {{suite: string, model: string, variant: string, configuration: string, file: string, anchor: string}} Case
 * @typedef {{cases: number[], status: string, marks?: Record<string, number[]>,
 *   metrics: Record<string, {median: (number | null)[], low?: (number | null)[], high?: (number | null)[]}>}} Shard
 * @typedef {{assumed: number, floor: number, subject: string, thresholds: Record<string, (number | null)[]>,
 *   realised: (string | null)[], newest: string | null}} Noise
 * @typedef {{devices: string[], environments: Record<string, Record<string, string>>}} Environments
 * @typedef {{case: Case, device: string, three: Three, lack: string, doubt: string, letter: string,
 *   threshold: number | null, realised: string | null}} Half
 * `lack` says why the half is no pass, empty where it is one, and `doubt` which mark keeps its number out.
 * @typedef {{a: Half | undefined, b: Half | undefined, word: Word, why: string, ratio: number, low: number,
 *   high: number, factor: number, known: boolean, limit: number}} Row
 * @typedef {{snapshot: string, device: string, configuration: string}} Side
 */

const FAILED = new Set(["a", "e", "o", "t", "c"]);
const AT_ONCE = 100;
const NEWEST = "newest";
/** @type {[Word, string][]} */
const WORDS = [
  ["better", "better"], ["worse", "worse"], ["onlya", "passes on A only"], ["onlyb", "passes on B only"],
  ["unchanged", "unchanged"], ["undecided", "undecided"], ["incomparable", "not comparable"],
];
const STATE = ["a", "b", "ad", "bd", "ac", "bc", "metric"];

const chooser = document.getElementById("chooser");
const result = document.getElementById("result");
if (chooser && result) start(chooser, result).catch((error) => result.replaceChildren(complaint(error)));

/** @param {HTMLElement} chooser @param {HTMLElement} result */
async function start(chooser, result) {
  const site = await manifest();
  const metrics = (chooser.dataset.metrics ?? "").split(" ").filter(Boolean);
  if (!metrics.length || !site.snapshots.length) return;
  chooser.hidden = false;
  document.getElementById("scripts")?.remove();
  const prepared = document.getElementById("prepared");

  /** @param {Record<string, string>} changes */
  const go = (changes) => {
    commit({ ...filled(site, metrics, read()), ...changes });
    show();
  };
  let turn = 0;
  const show = async () => {
    const mine = (turn += 1);
    const asked = read();
    const chosen = STATE.some((name) => asked[name]);
    const state = filled(site, metrics, asked);
    chooser.replaceChildren(...controls(site, metrics, state, go));
    if (prepared) prepared.hidden = chosen;
    if (!chosen) return result.replaceChildren();
    result.replaceChildren(element("p", { class: "muted" }, "Loading both sides …"));
    try {
      const found = await compared(site, state);
      if (mine === turn) result.replaceChildren(...found);
    } catch (error) {
      if (mine === turn) result.replaceChildren(complaint(error));
    }
  };
  follow(show);
  await show();
}

/** The state with its defaults: the newest snapshot, and the one before unless devices or configurations differ. @param {Manifest} site @param {string[]} metrics @param {Record<string, string>} state */
function filled(site, metrics, state) {
  const ids = site.snapshots.map(({ id }) => id);
  const b = state.b || ids[ids.length - 1];
  const apart = (state.ad ?? "") !== (state.bd ?? "") || (state.ac ?? "") !== (state.bc ?? "");
  const before = apart ? b : ids[Math.max(0, ids.indexOf(b) - 1)];
  return { a: state.a || before, b, ad: state.ad ?? "", bd: state.bd ?? "", ac: state.ac ?? "", bc: state.bc ?? "", metric: metrics.includes(state.metric) ? state.metric : metrics[0] };
}

/**
 * @param {Manifest} site @param {string[]} metrics @param {Record<string, string>} state
 * @param {(changes: Record<string, string>) => void} go
 */
function controls(site, metrics, state, go) {
  const versions = releases(site).reverse();
  const snapshots = [
    { value: NEWEST, text: "newest of the device" },
    ...versions.map((version) => ({ value: `torch:${version}`, text: `torch ${version}, newest`, group: "Newest of each torch release" })),
    ...[...site.snapshots].reverse().map(({ id, torch_version: version, date, commit }) => ({ value: id, text: `${date} · ${commit.slice(0, 10) || "?"} · torch ${version || "?"}`, group: "Snapshots" })),
  ];
  const devices = [{ value: "", text: "all (matched)" }, ...site.devices.map(({ id, name }) => ({ value: id, text: name }))];
  const configurations = [{ value: "", text: "all (matched)" }, ...site.configurations.map(({ name }) => ({ value: name, text: name }))];
  /** @param {"a" | "b"} name */
  const side = (name) => {
    const other = name === "a" ? "b" : "a";
    /** Where one side is named and the other is not, both are named. @param {string} key @param {string} value */
    const paired = (key, value) => ({ [name + key]: value, ...(value ? (state[other + key] ? {} : { [other + key]: value }) : { [other + key]: "" }) });
    return element(
      "fieldset", {}, element("legend", {}, name.toUpperCase()),
      choice("snapshot", snapshots, state[name], (value) => go({ [name]: value })),
      choice("device", devices, state[`${name}d`], (value) => go(paired("d", value))),
      choice("configuration", configurations, state[`${name}c`], (value) => go(paired("c", value))),
    );
  };
  const swap = element("button", { type: "button" }, "Swap A and B");
  swap.addEventListener("click", () => go({ a: state.b, b: state.a, ad: state.bd, bd: state.ad, ac: state.bc, bc: state.ac }));
  const metric = choice("metric", metrics.map((value) => ({ value, text: value.replaceAll("_", " ") })), state.metric, (value) => go({ metric: value }));
  return [side("a"), side("b"), element("div", { class: "controls" }, metric, swap, ...starts(site, state, go))];
}

/** Buttons for the four usual questions. @param {Manifest} site @param {Record<string, string>} state @param {(changes: Record<string, string>) => void} go */
function starts(site, state, go) {
  const ids = site.snapshots.map(({ id }) => id);
  const newest = ids[ids.length - 1];
  const versions = releases(site);
  const [one, other] = site.devices;
  const plain = site.configurations[0]?.name;
  const second = site.configurations[1]?.name;
  /** @type {[string, boolean, Record<string, string>][]} */
  const found = [
    ["latest vs previous commit", ids.length > 1, { a: ids[ids.length - 2], b: newest, ad: "", bd: "", ac: "", bc: "" }],
    ["device vs device", Boolean(other), { a: NEWEST, b: NEWEST, ad: one?.id, bd: other?.id, ac: "", bc: "" }],
    ["configuration vs configuration", Boolean(second), { a: newest, b: newest, ad: "", bd: "", ac: plain, bc: second }],
    ["torch version vs torch version", versions.length > 1, { a: `torch:${versions[versions.length - 2]}`, b: `torch:${versions[versions.length - 1]}`, ad: "", bd: "", ac: "", bc: "" }],
  ];
  return found.filter(([, possible]) => possible).map(([text, , changes]) => {
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", () => go(changes));
    return button;
  });
}

/** The release of a torch version: nightly builds and build tags of it are the same. @param {string} version */
function release(version) {
  return /^\d+\.\d+(\.\d+)?/.exec(version)?.[0] ?? "";
}

/** The releases in the order in which they came. @param {Manifest} site */
function releases(site) {
  return [...new Set(site.snapshots.map(({ torch_version: version }) => release(version)))].filter(Boolean);
}

/**
 * The snapshot of a side.
 * @param {Manifest} site @param {string} name an id, `torch:` and a release, or the newest of the device
 * @param {string} device its id, empty for all
 */
async function snapshotOf(site, name, device) {
  if (name === NEWEST && device) {
    const { newest } = /** @type {Noise} */ (await load(`latest/noise-${device}.json`));
    if (newest) return newest;
  }
  if (name === NEWEST && site.snapshots.length) return site.snapshots[site.snapshots.length - 1].id;
  const wanted = name.startsWith("torch:") ? name.slice(6) : null;
  const found = site.snapshots.findLast(({ id, torch_version: version }) => (wanted === null ? id === name : release(version) === wanted));
  if (!found) throw new Error(`This site has no snapshot ${visible(name)}: choose another one.`);
  return found.id;
}

/** @param {Manifest} site @param {Record<string, string>} state */
async function compared(site, state) {
  for (const id of [state.ad, state.bd]) {
    if (id && !site.devices.some((device) => device.id === id)) throw new Error(`This site has no device ${visible(id)}: choose another one.`);
  }
  const devices = { a: state.ad || state.bd, b: state.bd || state.ad };
  const a = { snapshot: await snapshotOf(site, state.a, devices.a), device: devices.a, configuration: state.ac || state.bc };
  const b = { snapshot: await snapshotOf(site, state.b, devices.b), device: devices.b, configuration: state.bc || state.ac };
  const metric = site.metrics.find(({ name }) => name === state.metric);
  if (!metric) throw new Error(`This site has no metric ${visible(state.metric)}.`);
  const [left, right] = await Promise.all([a, b].map((side) => halves(site, side, metric)));
  const rows = joined(left.found, right.found, a, b, metric.better !== "higher", left.limits);
  const different = differences(site, a, b, left.environments, right.environments);
  return [...summary(site, a, b, metric, rows), ...groups(rows, metric), different];
}

/**
 * The cases of one side by what they ask for.
 * @param {Manifest} site @param {Side} side @param {Manifest["metrics"][number]} wanted
 */
async function halves(site, side, wanted) {
  const metric = wanted.name;
  const folder = `snapshots/${side.snapshot}`;
  /** @type {Environments} */
  const environments = await load(`${folder}/environments.json`);
  const devices = environments.devices.filter((id) => !side.device || id === side.device);
  /** @type {Map<string, Half>} */
  const found = new Map();
  const limits = { floor: 0, assumed: Infinity };
  const codes = new Map(site.statuses.map(({ letter, code }) => [letter, code]));
  const files = /** @type {[{device: string, cases: Case[]}, Shard, Shard | null, Noise][]} */ (
    await Promise.all(
      devices.map((id) =>
        Promise.all([
          load(`cases/${id}.json`), load(`${folder}/${id}.core.json`),
          wanted.core ? null : load(`${folder}/${id}.extra.json`), load(`latest/noise-${id}.json`),
        ]),
      ),
    )
  );
  // In the order of the devices, not of arrival: rows that differ alike would change places from visit to visit.
  files.forEach(([list, core, extra, noise], at) => {
    const id = devices[at];
    limits.floor = noise.floor;
    limits.assumed = noise.assumed;
    const numbers = (extra ?? core).metrics[metric];
    const marked = (/** @type {string[]} */ names) => names.map((name) => ({ name, places: new Set(core.marks?.[name] ?? []) }));
    const [uncounted, doubts] = [marked(site.uncounted), marked(wanted.doubts)];
    core.cases.forEach((number, place) => {
      const item = list.cases[number];
      if (noise.subject[number] !== "m" || (side.configuration && item.configuration !== side.configuration)) return;
      const letter = core.status[place];
      const first = (/** @type {{name: string, places: Set<number>}[]} */ marks) => marks.find(({ places }) => places.has(place))?.name ?? "";
      const lack = letter === "p" ? first(uncounted) : codes.get(letter) ?? "not planned";
      const doubt = first(doubts);
      const three = { median: numbers?.median[place] ?? null, low: numbers?.low?.[place] ?? null, high: numbers?.high?.[place] ?? null };
      const known = noise.thresholds[metric]?.[number] ?? null;
      found.set(keyOf(item, side, id), { case: item, device: list.device, three, lack, doubt, letter, threshold: known, realised: noise.realised[number] });
    });
  });
  return { found, environments, limits };
}

/** @param {Case} item @param {Side} side @param {string} device */
function keyOf(item, side, device) {
  return JSON.stringify([item.suite, item.model, item.variant, side.configuration ? "" : item.configuration, side.device ? "" : device]);
}

/**
 * @param {Map<string, Half>} left @param {Map<string, Half>} right @param {Side} a @param {Side} b
 * @param {boolean} lower @param {{floor: number, assumed: number}} least
 * @returns {Row[]}
 */
function joined(left, right, a, b, lower, least) {
  const same = a.device === b.device;
  return [...new Set([...left.keys(), ...right.keys()])].map((key) => {
    const [one, two] = [left.get(key), right.get(key)];
    const limits = [one?.threshold, two?.threshold].filter((value) => typeof value === "number");
    const known = limits.length > 0;
    const limit = known ? Math.max(least.floor, ...limits) : least.assumed;
    const alike = same || !one?.realised || !two?.realised || one.realised === two.realised;
    /** @type {Row} */
    const row = { a: one, b: two, word: "incomparable", why: "", ratio: NaN, low: NaN, high: NaN, factor: -1, known, limit };
    const okA = one !== undefined && !one.lack;
    const okB = two !== undefined && !two.lack;
    if (okA && two && FAILED.has(two.letter)) return { ...row, word: "onlya", why: `${two.lack} on B` };
    if (okB && one && FAILED.has(one.letter)) return { ...row, word: "onlyb", why: `${one.lack} on A` };
    if (okA && okB && !one.doubt && !two.doubt && alike && (one.three.median ?? 0) > 0 && (two.three.median ?? 0) > 0) {
      return { ...row, ...judge(one.three, two.three, limit, known, lower) };
    }
    const lack = (/** @type {Half | undefined} */ half) => (half ? half.lack || half.doubt : "not planned");
    return { ...row, why: reason(lack(one), lack(two), (one?.three.median ?? 0) > 0, alike) };
  });
}

/** @typedef {Manifest["metrics"][number]} Metric */

/** A ratio as it is shown, and its interval, of logarithms of B over A. @param {{ratio: number, low: number, high: number}} logs @param {Metric} metric */
function shown({ ratio, low, high }, metric) {
  const [value, one, other] = [ratio, low, high].map((log) => gain(Math.exp(log), metric.better));
  const banded = Number.isFinite(low) && Number.isFinite(high);
  const [text, between] = parts(value, banded ? Math.min(one, other) : null, banded ? Math.max(one, other) : null, "ratio");
  return { text, between };
}

/** @param {Manifest} site @param {Side} a @param {Side} b @param {Metric} metric @param {Row[]} rows */
function summary(site, a, b, metric, rows) {
  const list = element("ul", { class: "verdicts", "aria-label": "Counts" });
  for (const [word, title] of WORDS) {
    const count = rows.filter((row) => row.word === word).length;
    list.append(element("li", { class: `v-${word}${count ? "" : " none"}` }, element("b", {}, String(count)), ` ${title}`));
  }
  const known = rows.filter((row) => Number.isFinite(row.ratio));
  const middle = mean(known.filter(({ b }) => b?.case.suite !== "toy").map(({ ratio }) => ratio));
  const toys = known.length - middle.n;
  const out = `${rows.length - middle.n} excluded${toys ? `, including ${toys} toy` : ""}`;
  const line = element("p", { class: "mean" });
  if (middle.n) {
    const { text, between } = shown({ ...middle, ratio: middle.mean }, metric);
    line.append(`Geometric mean ${metric.gain} of B over A: `, element("b", {}, text), `${between && ` ${between}`} (n ${middle.n}, ${out}).`);
  } else line.append(`No case enters a mean: ${out}.`);
  /** @param {Side} side */
  const named = (side) => {
    const device = site.devices.find(({ id }) => id === side.device)?.name ?? "all devices";
    const snapshot = site.snapshots.find(({ id }) => id === side.snapshot);
    return visible(`${device}, ${side.configuration || "all configurations"}, ${side.snapshot} (torch ${snapshot?.torch_version || "?"})`);
  };
  const sides = element("p", { class: "sides" }, "A: ", element("b", {}, named(a)), element("br"), "B: ", element("b", {}, named(b)));
  return [element("h2", {}, `${metric.name.replaceAll("_", " ")}: B against A`), sides, list, line];
}

/** @param {Row[]} rows @param {Metric} metric */
function groups(rows, metric) {
  rows.sort((x, y) => y.factor - x.factor || order(x.why, y.why) || order(named(x), named(y)));
  const differing = rows.filter(({ word }) => word === "better" || word === "worse");
  const oneSided = rows.filter(({ word }) => word === "onlya" || word === "onlyb");
  const found = [];
  if (differing.length) found.push(element("h3", {}, "Significant differences, largest factor first"), tableOf(differing, metric, "Significant differences"));
  else found.push(element("p", {}, "No significant differences."));
  if (oneSided.length) found.push(element("h3", {}, "Passes on one side only"), tableOf(oneSided, metric, "Passes on one side only"));
  for (const [word, title] of /** @type {[Word, string][]} */ ([["undecided", "Undecided"], ["unchanged", "Unchanged"]])) {
    const members = rows.filter((row) => row.word === word);
    if (members.length) found.push(folded(`${title}: ${members.length}`, () => tableOf(members, metric, title)));
  }
  const apart = rows.filter(({ word }) => word === "incomparable");
  if (apart.length) {
    const counts = new Map();
    for (const { why } of apart) counts.set(why, (counts.get(why) ?? 0) + 1);
    const ordered = [...counts].sort((x, y) => y[1] - x[1] || order(x[0], y[0]));
    const list = element("ul", {}, ...ordered.map(([why, count]) => element("li", {}, element("b", {}, String(count)), ` ${why}`)));
    found.push(element("h3", {}, "Not comparable, by reason"), list, folded(`All ${apart.length}`, () => tableOf(apart, metric, "Not comparable")));
  }
  return found;
}

/** By their characters, as the pages that were prepared. @param {string} x @param {string} y */
function order(x, y) {
  return x < y ? -1 : Number(x > y);
}

/** @param {Row} row */
function named(row) {
  const { case: item } = /** @type {Half} */ (row.b ?? row.a);
  return `${item.suite}/${item.model} ${item.variant}\n${item.configuration}`;
}

/** @param {string} title @param {() => HTMLElement} make */
function folded(title, make) {
  const found = element("details", {}, element("summary", {}, title));
  found.addEventListener("toggle", () => {
    if (found.open && found.children.length === 1) found.append(make());
  });
  return found;
}

/** @param {Row[]} rows @param {Metric} metric @param {string} label */
function tableOf(rows, metric, label) {
  const numeric = Number.isFinite(rows[0].ratio);
  const titles = numeric ? ["workload", "on", "verdict", metric.gain, "interval", "factor", "noise", "A", "B"] : ["workload", "on", "why", "A", "B"];
  const head = element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)));
  const body = element("tbody");
  let shown = 0;
  const more = element("button", { type: "button" });
  const add = () => {
    body.append(...rows.slice(shown, shown + AT_ONCE).map((row) => line(row, metric, numeric)));
    shown = Math.min(rows.length, shown + AT_ONCE);
    more.textContent = `Show more (${rows.length - shown})`;
    more.hidden = shown === rows.length;
  };
  more.addEventListener("click", add);
  add();
  const table = element("table", { class: "plain" }, element("thead", {}, head), body);
  return element("div", {}, element("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": label }, table), more);
}

/** @param {Row} row @param {Metric} metric @param {boolean} numeric */
function line(row, metric, numeric) {
  const half = /** @type {Half} */ (row.b ?? row.a);
  const { case: item } = half;
  const href = `${item.file}#${item.anchor}`;
  const name = element("th", { scope: "row" }, element("a", { href }, visible(`${item.suite}/${item.model}`)), " ", element("span", { class: "variant" }, visible(item.variant)));
  const { a, b } = row;
  const alike = a && b && a.device !== b.device && a.case.configuration === b.case.configuration;
  const on = [a, b].filter((one) => one !== undefined).map((one) => (alike ? one.case.configuration : `${one.device} · ${one.case.configuration}`));
  const where = element("td", {}, visible([...new Set(on)].join(" → ")));
  const numbers = [row.a, row.b].map((one) => element("td", { class: one?.doubt ? "nowrap doubt" : "nowrap" }, numberOf(one, metric.unit)));
  if (!numeric) return element("tr", {}, name, where, element("td", {}, row.why), ...numbers);
  const { text, between } = shown(row, metric);
  return element(
    "tr", {}, name, where,
    element("td", {}, element("span", { class: `word v-${row.word}` }, row.word)),
    element("td", { class: "num" }, element("b", {}, text)),
    element("td", { class: "nowrap" }, between || "no interval"),
    element("td", { class: "num" }, row.known ? fixed(row.factor, 1) : "–"),
    element("td", { class: "num" }, row.known ? `${fixed(100 * (Math.exp(row.limit) - 1), 1)}%` : "assumed"),
    ...numbers,
  );
}

/** @param {Half | undefined} half @param {string} unit */
function numberOf(half, unit) {
  if (!half) return "not planned";
  if (half.three.median === null) return half.lack || "no number";
  return told(half.three.median, half.three.low, half.three.high, unit, half.doubt);
}

/**
 * In what the environments of both sides differ, device by device.
 * @param {Manifest} site @param {Side} a @param {Side} b @param {Environments} left @param {Environments} right
 */
function differences(site, a, b, left, right) {
  const name = (/** @type {string} */ id) => site.devices.find((device) => device.id === id)?.name ?? id;
  /** @type {[string, string][]} */
  const pairs = a.device ? [[name(a.device), name(b.device)]] : [...new Set([...left.devices, ...right.devices])].map((id) => [name(id), name(id)]);
  const rows = [];
  for (const [one, two] of pairs) {
    const [x, y] = [said(left, one), said(right, two)];
    for (const key of [...new Set([...Object.keys(x), ...Object.keys(y)])].sort()) {
      if (x[key] !== y[key]) rows.push([one === two ? one : `${one} → ${two}`, key, x[key] ?? "not recorded", y[key] ?? "not recorded"]);
    }
  }
  if (!rows.length) return element("p", { class: "muted" }, "No recorded difference between the environments.");
  const head = element("tr", {}, ...["device", "fact", "A", "B"].map((title) => element("th", { scope: "col" }, title)));
  const body = element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text) => element("td", {}, factOf(row[1], text))))));
  const table = element("table", { class: "plain" }, element("thead", {}, head), body);
  return element(
    "section", {}, element("h3", {}, `Environments: ${rows.length} difference${rows.length > 1 ? "s" : ""}`),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Environments" }, table),
  );
}

/** A value of a fact; a commit of torch leads to its page. @param {string} key @param {string} text */
function factOf(key, text) {
  if (!/^torch[._](git_)?commit$/.test(key) || !/^[0-9a-f]{8,64}$/.test(text)) return visible(text);
  return element("a", { href: `https://github.com/pytorch/pytorch/commit/${text}` }, text.slice(0, 12));
}

/** What is said of a device; environments know no index. @param {Environments} side @param {string} device */
function said(side, device) {
  return side.environments[device] ?? side.environments[device.replace(/\.\d+$/, "")] ?? {};
}
