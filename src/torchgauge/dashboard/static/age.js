// Keeps ages true in an open page: the page itself says dates, which are true for ever. A clock behind the one
// that built the page counts from the build, and what is dated later than that keeps its date.

const BUILT = Number(document.body.dataset.built) * 1000;

/** The moment that ages count to, in milliseconds. */
export function present() {
  return Math.max(Date.now(), BUILT);
}

/** How old something is, in its largest unit. @param {number} seconds */
export function age(seconds) {
  for (const [size, name] of /** @type {[number, string][]} */ ([[86400, "d"], [3600, "h"], [60, "min"]])) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${name} ago`;
  }
  return "under 1 min ago";
}

function tell() {
  const now = present();
  for (const time of /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll("time[data-age]"))) {
    if (!time.title) time.title = time.textContent ?? "";
    const seconds = (now - Date.parse(time.dateTime)) / 1000;
    const text = seconds >= 0 ? age(seconds) : time.title;
    if (time.textContent !== text) time.textContent = text;
  }
  for (const line of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-late]"))) {
    line.hidden = now < Number(line.dataset.late) * 1000;
  }
}

tell();
setInterval(tell, 30_000);
document.addEventListener("visibilitychange", tell);
