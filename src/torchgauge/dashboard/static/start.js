// Starts the modules of a page. Where a file of the site is missing the page says which one, and goes on without.

const folder = new URL("./", import.meta.url);

/** Files that cannot be loaded, of `name` and all that it imports. @param {string} name @param {Set<string>} seen @returns {Promise<string[]>} */
async function missing(name, seen = new Set()) {
  if (seen.has(name)) return [];
  seen.add(name);
  const answer = await fetch(new URL(name, folder)).catch(() => null);
  if (!answer?.ok) return [`static/${name}`];
  const imports = [...(await answer.text()).matchAll(/^(?:import|export) .*?"\.\/([\w-]+\.js)";$/gm)];
  return (await Promise.all(imports.map(([, next]) => missing(next, seen)))).flat();
}

/** Why the module `name` could not be imported, in words. @param {string} name @param {unknown} error */
async function why(name, error) {
  const files = await missing(name);
  if (!files.length) return `static/${name} does not run: ${error instanceof Error ? error.message : error}`;
  return `${files.join(", ")} ${files.length > 1 ? "are" : "is"} missing from this site`;
}

/** For the `catch` of an import: an error that names the files. @param {string} name @returns {(error: unknown) => Promise<never>} */
export function absent(name) {
  return async (error) => {
    throw new Error(await why(name, error));
  };
}

/** Say for good, at the top of the page, what is missing. @param {string} text */
export function miss(text) {
  if ([...document.querySelectorAll("main > .notice")].some((each) => each.textContent === text)) return;
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = text;
  const title = document.querySelector("main h1");
  if (title) title.after(notice);
  else document.querySelector("main")?.prepend(notice);
}

/** Whether a style did not arrive: browsers tell it in one of these ways. @param {HTMLLinkElement} link */
function lacks(link) {
  const answers = /** @type {PerformanceResourceTiming[]} */ (performance.getEntriesByName(link.href));
  return !link.sheet?.cssRules.length || answers.some((answer) => answer.responseStatus >= 400);
}

function styles() {
  for (const link of /** @type {NodeListOf<HTMLLinkElement>} */ (document.querySelectorAll('link[rel="stylesheet"]'))) {
    const name = link.href.split("/").at(-1);
    if (lacks(link)) miss(`A style sheet is missing from this site: static/${name}.`);
  }
}

const own = /** @type {NodeListOf<HTMLScriptElement>} */ (document.querySelectorAll("script[data-start]"));
document.getElementById("late")?.remove();
for (const name of [...own].flatMap((script) => (script.dataset.start ?? "").split(" "))) {
  import(`./${name}.js`).catch(absent(`${name}.js`)).catch((/** @type {Error} */ error) =>
    miss(`A part of this page does not work: ${error.message}. The rest of the page remains readable.`));
}
if (document.readyState === "complete") styles();
else addEventListener("load", styles);
