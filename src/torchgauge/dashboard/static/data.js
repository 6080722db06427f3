// The site's data: its manifest and files, loaded once and kept; what goes wrong is said in words.

/**
 * @typedef {{id: string, date: string, torch_version: string, commit: string, epoch: number}} Snapshot
 * @typedef {{file: string, version: string, integrity: string, licence: string, own_styles: string[]}} Bundle
 * `own_styles` are ids of style elements that the bundle would add, which the policy forbids, unless they are there.
 * @typedef {{snapshots: Snapshot[], epochs: {epoch: number, first: string, last: string, snapshots: number}[],
 *   devices: {id: string, name: string}[], configurations: {name: string, compiled: boolean}[],
 *   metrics: {name: string, unit: string, better: string, gain: string, core: boolean, doubts: string[]}[],
 *   statuses: {status: string, letter: string, code: string, meaning: string}[],
 *   nothing_planned: string, plotly: Bundle, uncounted: string[]}} Manifest
 * `uncounted` are the marks of passes that are none, the `doubts` of a metric those that keep its number out of
 * what is compared; the gravest come first. The numbers of a `core` metric are in the files called so.
 */

/** The layout of files that this page understands. */
const SCHEMA = 1;

/** The folder of the site, whatever page asks. */
export const root = new URL("../", import.meta.url);

/** @type {Map<string, Promise<any>>} */
const kept = new Map();

/**
 * The content of a JSON file, by its name in the site or its address. A failure is forgotten, so that trying
 * again asks again.
 * @param {string} name @returns {Promise<any>}
 */
export function load(name) {
  const url = new URL(name, root).href;
  let found = kept.get(url);
  if (!found) {
    found = fetched(url, name);
    found.catch(() => kept.delete(url));
    kept.set(url, found);
  }
  return found;
}

/** @param {string} url @param {string} name */
async function fetched(url, name) {
  let answer;
  try {
    answer = await fetch(url);
  } catch {
    throw new Error(`${name} cannot be reached: the server may have stopped`);
  }
  if (!answer.ok) throw new Error(`${name} is missing from this site (${answer.status}): reload, the site may have been rebuilt`);
  let data;
  try {
    data = await answer.json();
  } catch {
    throw new Error(`${name} is damaged or incompletely deployed: reload in a minute`);
  }
  if (data.schema !== SCHEMA) throw new Error(`${name} belongs to another version of the site: reload this page`);
  return data;
}

/** @returns {Promise<Manifest>} */
export function manifest() {
  return load("manifest.json");
}

const HIDDEN = /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;

/** Text of a store as the pages show it: without terminal sequences, what is invisible as U+XXXX. @param {string} text */
export function visible(text) {
  const hex = (/** @type {string} */ found) => (found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return text.replace(TERMINAL, "").replace(CONTROL, "").replace(HIDDEN, (found) => `[U+${hex(found)}]`);
}

/**
 * An element with text and children; never markup.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} name @param {Record<string, string>} [attributes] @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/**
 * A labelled choice.
 * @param {string} label @param {{value: string, text: string, group?: string}[]} options @param {string} chosen
 * @param {(value: string) => void} changed
 */
export function choice(label, options, chosen, changed) {
  const select = element("select", { name: label });
  /** @type {Map<string, HTMLOptGroupElement>} */
  const groups = new Map();
  for (const { value, text, group } of options) {
    const option = element("option", { value }, visible(text));
    option.selected = value === chosen;
    if (!group) {
      select.append(option);
      continue;
    }
    const held = groups.get(group) ?? element("optgroup", { label: group });
    if (!groups.has(group)) select.append(held);
    groups.set(group, held);
    held.append(option);
  }
  select.addEventListener("change", () => changed(select.value));
  return element("label", {}, element("span", {}, label), select);
}

/** @param {unknown} error */
export function complaint(error) {
  return element("p", { class: "notice", role: "alert" }, error instanceof Error ? error.message : String(error));
}
