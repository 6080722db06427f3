// What may be asked of a matrix: examples of queries, each of which is asked where one chooses it.

/**
 * The examples, by names as a query has them.
 * @param {string} device @param {string} configuration @param {string} column @param {(query: string) => void} ask
 */
export function examples(device, configuration, column, ask) {
  const list = document.createElement("dl");
  for (const [query, meaning] of [
    ["resnet suite:* mode:training", "words and fields of the workload; * stands for any characters"],
    [`${device}:error ${column}:pass`, "a cell of the device, or of its configuration, has this status"],
    [`${device}:oom,crash`, "one of a list"],
    [`config:${configuration} fail`, "only cells of this configuration; device: does the same for a device"],
    [`-${device}:pass crash OR oom`, "not; either. Adjacent terms must all hold"],
    ["new", "passed before, and failed at its newest result"],
    ["cell(error flaky)", "one cell has all of these"],
    [`every(${device}:pass)`, "all planned cells of the device have this status"],
    ["count(fail)>=3", "number of cells; fail is any failed attempt"],
    ["seq(pass error)", "passed, then raised an error at the next result"],
    [`speedup<1 ${device}:latency>10ms`, "numbers with units"],
    ["or(unexpected other_cause degraded other_model unchecked unsteady faster_than_peak leaks ties flaky contributed imported stale none)", "cells with one of these marks; none: a combination that was not planned"],
  ]) {
    const [button, term, told] = [document.createElement("button"), document.createElement("dt"), document.createElement("dd")];
    Object.assign(button, { type: "button", className: "example", textContent: query });
    button.addEventListener("click", () => ask(query));
    term.append(button);
    told.append(meaning);
    list.append(term, told);
  }
  return list;
}
