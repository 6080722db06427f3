// A button that copies a command. Without this file the command can still be selected.

/** @param {string} text @param {HTMLButtonElement} button */
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select and copy by hand";
  }
}

for (const block of document.querySelectorAll("pre[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => copy((block.textContent ?? "").trim(), button));
  block.before(button);
}
