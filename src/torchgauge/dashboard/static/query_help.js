// What may be asked of a matrix: examples of queries, each of which is asked where one chooses it.

/**
 * The examples, by names as a query has them.
 * @param {string} device @param {string} configuration @param {string} column @param {(query: string) => void} ask
 */
export function examples(device, configuration, column, ask) {
  const list = document.createElement("dl");
  for (const [query, meaning] of [
    ["resnet suite:* mode:training", "words and fields of the workload; * stands for any characters"],
    [`${device}:error ${column}:pass`, "some cell of a device, or of a device's configuration, has this status"],
    [`${device}:oom,crash`, "one of a list"],
    [`config:${configuration} fail`, "only cells of this configuration, or device: of this device"],
    [`-${device}:pass crash OR oom`, "not; one or the other. Terms beside each other must all hold"],
    ["new", "passed before, and failed at its newest result"],
    ["cell(error flaky)", "one cell has it all"],
    [`every(${device}:pass)`, "all planned cells of the device have it"],
    ["count(fail)>=3", "so many cells; fail is any status of an attempt that did not pass"],
    ["seq(pass error)", "passed, and at its next result raised an error"],
    [`speedup<1 ${device}:latency>10ms`, "numbers, with units"],
    ["or(unexpected other_cause degraded other_model unchecked unsteady faster_than_peak leaks ties flaky contributed imported stale none)", "marks; none is a combination that nobody planned"],
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
