// The page of trends: any metric, suite, configuration and epoch, drawn when it is chosen.

import { choice, complaint, element, load, manifest } from "./data.js";
import { clear, compareLink, figure, prepare } from "./chart.js";
import { gain } from "./number_text.js";
import { commit, follow, read } from "./state.js";

/**
 * @typedef {{reference: number, cases: number, median: (number | null)[], low: (number | null)[],
 *   high: (number | null)[], n: number[]}} Mean
 * @typedef {{configuration: string, suite: string, passed: (number | null)[], planned: number[],
 *   doubts?: Record<string, number[]>, metrics: Record<string, Mean>}} TrendLine
 * @typedef {{epoch: number, snapshots: string[], lines: TrendLine[]}} Trend
 */

const host = document.getElementById("explore");
if (host) start(host).catch((error) => { host.hidden = false; host.replaceChildren(complaint(error)); });

/** @param {HTMLElement} host */
async function start(host) {
  const site = await manifest();
  const metrics = (host.dataset.metrics ?? "").split(" ").filter(Boolean);
  const body = element("div");
  const bar = element("div", { class: "controls" });
  const hint = element("p", { class: "muted" }, "Pick a device, or a chart below.");
  host.append(element("h2", {}, "Chart"), bar, hint, body);
  host.hidden = false;
  document.getElementById("scripts")?.remove();

  /** @param {Record<string, string>} changes */
  const go = (changes) => {
    commit({ ...read(), ...changes });
    show();
  };

  let turn = 0;
  const show = async () => {
    const mine = (turn += 1);
    const state = read();
    bar.replaceChildren(...controls(site, metrics, state, go));
    clear(body);
    hint.hidden = Boolean(state.device);
    if (!state.device) return;
    body.append(element("p", { class: "muted" }, "Loading …"));
    prepare();
    try {
      const figures = await figuresOf(site, state, metrics[0] ?? "");
      if (mine !== turn) return;
      clear(body);
      body.append(...figures);
    } catch (error) {
      if (mine === turn) body.replaceChildren(complaint(error));
    }
  };
  follow(show);
  document.querySelector(".panels")?.addEventListener("click", (event) => {
    const link = /** @type {Element} */ (event.target).closest("a");
    const click = /** @type {MouseEvent} */ (event);
    if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
    event.preventDefault();
    go(Object.fromEntries(new URL(link.href).searchParams));
    host.scrollIntoView({ block: "start" });
  });
  await show();
}

/**
 * @param {import("./data.js").Manifest} site @param {string[]} metrics @param {Record<string, string>} state
 * @param {(changes: Record<string, string>) => void} go
 */
function controls(site, metrics, state, go) {
  const suites = [...new Set(/** @type {{models?: {suite: string}[]}} */ (site).models?.map(({ suite }) => suite) ?? [])];
  const plain = (/** @type {string} */ value) => ({ value, text: value });
  // A chart spans an epoch and the one before it.
  const epochs = site.epochs.map(({ epoch, last }, at, all) => ({ value: String(epoch), text: `${all[Math.max(0, at - 1)].first.slice(0, 10)} to ${last.slice(0, 10)}` }));
  const newest = epochs.length ? epochs[epochs.length - 1].value : "";
  return [
    choice("device", [{ value: "", text: "choose" }, ...site.devices.map(({ id, name }) => ({ value: id, text: name }))], state.device ?? "", (device) => go({ device })),
    choice("configuration", [{ value: "", text: "all" }, ...site.configurations.map(({ name }) => plain(name))], state.configuration ?? "", (configuration) => go({ configuration })),
    choice("suite", [{ value: "", text: "all together" }, ...suites.map(plain)], state.suite ?? "", (suite) => go({ suite })),
    choice("metric", metrics.map((value) => ({ value, text: value.replaceAll("_", " ") })), state.metric || metrics[0], (metric) => go({ metric })),
    choice("dates", epochs.reverse(), state.epoch || newest, (epoch) => go({ epoch: epoch === newest ? "" : epoch })),
  ];
}

/**
 * How many cases have a number at a place that is in no mean, by the reason.
 * @param {import("./data.js").Manifest} site @param {string} metric @param {TrendLine | undefined} line @param {number} at
 */
function leftOut(site, metric, line, at) {
  const doubts = site.metrics.find(({ name }) => name === metric)?.doubts ?? [];
  const found = [...doubts, "toy"].filter((name) => line?.doubts?.[name]?.[at]).map((name) => `${line?.doubts?.[name][at]} ${name}`);
  return found.length ? `${found.join(", ")} left out` : "";
}

/**
 * The mean and the share of passes over the chosen epoch and the one before it.
 * @param {import("./data.js").Manifest} site @param {Record<string, string>} state @param {string} first
 */
async function figuresOf(site, state, first) {
  const metric = state.metric || first;
  const last = state.epoch ? Number(state.epoch) : Math.max(...site.epochs.map(({ epoch }) => epoch));
  const epochs = site.epochs.map(({ epoch }) => epoch).filter((epoch) => epoch === last || epoch === last - 1);
  const indices = /** @type {{epoch: number, snapshots: string[], devices: string[]}[]} */ (
    await Promise.all(epochs.map((epoch) => load(`trends/${epoch}.json`)))
  );
  const part = site.metrics.some(({ name, core }) => core && name === metric) ? "core" : "extra";
  const parts = /** @type {(Trend | null)[]} */ (
    await Promise.all(
      indices.map(({ epoch, devices }) =>
        devices.includes(state.device) ? load(`trends/${state.device}/${epoch}.${part}.json`) : null,
      ),
    )
  );
  const there = new Set(indices.flatMap(({ snapshots }) => snapshots));
  const snapshots = site.snapshots.filter(({ id }) => there.has(id));
  const breaks = indices.slice(1).map(({ snapshots: [id] }) => snapshots.findIndex((snapshot) => snapshot.id === id));
  const names = new Set(parts.flatMap((one) => one?.lines.map(({ configuration }) => configuration) ?? []));
  const shown = site.configurations.map(({ name }) => name).filter((name) => names.has(name) && (!state.configuration || state.configuration === name));
  const link = (/** @type {string} */ configuration) => (/** @type {number} */ at, /** @type {number} */ before) =>
    compareLink(snapshots[before].id, snapshots[at].id, state.device, configuration, metric);
  const wanted = site.metrics.find(({ name }) => name === metric);
  /** @param {number | null | undefined} ratio */
  const turn = (ratio) => (typeof ratio === "number" ? gain(ratio, wanted?.better ?? "") : null);
  /** @type {import("./chart.js").Line[]} */
  const means = [], shares = [];
  for (const name of shown) {
    const median = [], low = [], high = [], beside = [], share = [], counts = [];
    for (const [i, index] of indices.entries()) {
      const line = parts[i]?.lines.find((one) => one.configuration === name && one.suite === (state.suite ?? ""));
      const mean = line?.metrics[metric];
      for (let at = 0; at < index.snapshots.length; at += 1) {
        const ends = [turn(mean?.low[at]), turn(mean?.high[at])];
        if (wanted?.better === "lower") ends.reverse();
        median.push(turn(mean?.median[at]));
        low.push(ends[0]);
        high.push(ends[1]);
        const n = mean ? (mean.median[at] === null ? `n ${mean.n[at]}: too few` : `n ${mean.n[at]} of ${mean.cases}`) : "no number";
        beside.push([n, leftOut(site, metric, line, at)].filter(Boolean).join(", "));
        const passed = line?.passed[at] ?? null;
        share.push(passed === null || !line?.planned[at] ? null : (100 * passed) / line.planned[at]);
        counts.push(passed === null ? "no result" : `${passed} of ${line?.planned[at]}`);
      }
    }
    if (median.some((value) => value !== null)) means.push({ name, median, low, high, beside, link: link(name) });
    if (share.some((value) => value !== null)) shares.push({ name, median: share, beside: counts, link: link(name) });
  }
  const device = site.devices.find(({ id }) => id === state.device)?.name ?? state.device;
  const where = `${device}${state.configuration ? ` · ${state.configuration}` : ""}${state.suite ? `, suite ${state.suite}` : ""}`;
  const side = wanted?.better === "neither" ? "" : ", above 1 is better";
  const found = [];
  if (means.length) {
    found.push(figure({ title: `${where}: ${metric.replaceAll("_", " ")}, ${wanted?.gain} over the reference${side}`, snapshots, lines: means, unit: "ratio", breaks, one: true }));
    if (breaks.length) found.push(element("p", { class: "muted" }, "The dotted line begins the next epoch, which has its own reference."));
  } else {
    const why = state.suite === "toy" ? "means exclude toys: choose another suite" : "choose another metric or older dates";
    found.push(element("p", { class: "notice" }, `No ${metric.replaceAll("_", " ")} of this device, configuration and suite in these dates: ${why}.`));
  }
  if (shares.length) found.push(figure({ title: `${where}: share of planned cases that pass`, snapshots, lines: shares, unit: "%", fromZero: true, exact: true }));
  return found;
}
