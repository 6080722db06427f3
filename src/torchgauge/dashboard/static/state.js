// The state of a page is the query of its address: readable, linkable, and walked by back and forward.

/** @typedef {Record<string, string>} State */

/** The state in the address. @returns {State} */
export function read() {
  return Object.fromEntries(new URLSearchParams(window.location.search));
}

/**
 * The address of this page with `state`; empty values are left out.
 * @param {State} state
 * @returns {URL}
 */
export function address(state) {
  const url = new URL(window.location.href);
  url.search = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== "")).toString();
  return url;
}

/** Show `state` without a new step in the history: while somebody types. @param {State} state */
export function replace(state) {
  window.history.replaceState(null, "", address(state));
}

/** Make `state` a step that back leaves. Nothing happens where the address already says so. @param {State} state */
export function commit(state) {
  const url = address(state);
  if (url.href !== window.location.href) window.history.pushState(null, "", url);
}

/** Call `apply` with the state whenever back or forward is pressed. @param {(state: State) => void} apply */
export function follow(apply) {
  window.addEventListener("popstate", () => apply(read()));
}
