// The rows of a matrix: which are shown and in which order. Only those near the screen stand in the page, so that
// a large matrix costs no more than a small one; printing brings all of them.

/** @typedef {import("./line.js").Line} Line */

/** Rows beyond either edge of what is in sight that stand ready. */
const SPARE = 3;
/** How much of the screen a matrix takes at most, as the style says: of rows of text, and of squares. */
const TALL = 0.82, TALL_SQUARES = 0.92;
/** Pixels above a matrix of squares until they are known: the head of a page without a notice, and the controls. */
const ABOVE = 110;
/** How long rows beyond the screen wait for a reader who types or presses on. */
const PAUSE_MS = 100;

export class Rows {
  /** @param {HTMLTableElement} table @param {(line: Line) => void} dress makes a row look as the matrix does now */
  constructor(table, dress) {
    this.table = table;
    this.body = table.tBodies[0];
    this.dress = dress;
    this.region = /** @type {HTMLElement} */ (table.closest(".scroll"));
    /** @type {Line[]} */
    this.lines = [...this.body.rows].map((tr, order) => ({ tr, order, row: null, dressed: 0 }));
    this.shown = this.lines;
    this.look = 1;
    this.top = 0;
    this.first = 0;
    this.last = 0;
    this.whole = false;
    this.squares = false;
    // Of the page as it was laid out last: to ask while it changes would lay out what is about to go.
    this.at = 0;
    this.sizes = this.measured();
    /** Where the matrix begins on the screen, as rows of text and as squares. */
    this.edges = [0, ABOVE];
    this.later = 0;
    /** @type {() => void} */
    this.drawn = () => undefined;
    table.setAttribute("aria-rowcount", String(this.lines.length + 1 + (table.tFoot?.rows.length ?? 0)));
    let asked = 0;
    this.region.addEventListener("scroll", () => (asked ||= requestAnimationFrame(() => {
      asked = 0;
      this.follow();
    })), { passive: true });
    addEventListener("scroll", () => (this.later ? this.complete() : this.locate()), { passive: true });
    addEventListener("resize", () => {
      this.sizes = this.measured();
      this.draw();
    });
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  /** @param {boolean} whole */
  print(whole) {
    this.whole = whole;
    this.draw();
  }

  /** Heights in pixels: of the screen, and of a row of text, a row of squares and their heading, as the style says. */
  measured() {
    const style = getComputedStyle(this.table);
    const [line, square, heads] = ["--line", "--square", "--heads"].map((name) => parseFloat(style.getPropertyValue(name)));
    return { screen: window.innerHeight, line: line || 24, square: square || 24, heads: heads || 0 };
  }

  /** Height of a row in pixels. */
  height() {
    return this.squares ? this.sizes.square : this.sizes.line;
  }

  /** Rows from and to which the screen reaches at most. @returns {[number, number]} */
  seen() {
    const height = this.height(), all = this.shown.length, { screen, heads } = this.sizes;
    const view = Math.ceil((this.squares ? TALL_SQUARES * screen - heads : TALL * screen) / height);
    const from = Math.max(0, Math.min(Math.floor(this.at / height), all - 1));
    return [from, Math.min(all, from + view)];
  }

  /** After scrolling: new rows where the old ones do not reach. */
  follow() {
    this.at = this.region.scrollTop;
    const [from, to] = this.seen();
    if (from < this.first || to > this.last) this.draw();
  }

  /** The cells of every row look otherwise from now on. */
  redress() {
    this.look += 1;
    this.answer();
  }

  /** Squares, or rows of text. @param {boolean} wanted */
  squeeze(wanted) {
    this.squares = wanted;
    this.answer();
  }

  /** Show `lines`, in their order. @param {Line[]} lines */
  show(lines) {
    this.shown = lines;
    this.answer();
  }

  /** Where the matrix begins now. */
  locate() {
    this.edges[Number(this.squares)] = this.region.getBoundingClientRect().top;
  }

  /** Put the rows in sight into the page, which alone are painted sooner; those beyond the screen follow when
   * nothing else is asked for. */
  answer() {
    const [from, to] = this.seen(), { screen, heads } = this.sizes;
    if (to - from === this.shown.length) return this.draw(); // it has few rows
    const room = screen - Math.max(0, this.edges[Number(this.squares)]) - (this.squares ? heads : 0);
    this.draw(1 + Math.max(0, Math.ceil(room / this.height()))); // the first one may be seen in part
    clearTimeout(this.later);
    this.later = setTimeout(() => this.complete(), PAUSE_MS);
  }

  /** What `answer` left out. */
  complete() {
    clearTimeout(this.later);
    this.later = 0;
    this.locate();
    this.draw();
  }

  /** Put the rows near the screen into the page, and no others. @param {number} [most] how many, where not all are wanted yet */
  draw(most) {
    const [from, to] = this.seen();
    const held = this.body.contains(document.activeElement);
    const few = most !== undefined && !held, spare = few ? 0 : SPARE;
    this.top = from;
    this.first = this.whole ? 0 : Math.max(0, from - spare);
    this.last = this.whole ? this.shown.length : Math.min(this.shown.length, few ? Math.min(to, from + most) : to + spare);
    const wanted = this.shown.slice(this.first, this.last);
    const there = new Set(wanted.map((line) => line.tr));
    for (const tr of [...this.body.rows]) if (!there.has(tr)) tr.remove();
    let at = this.body.firstElementChild;
    wanted.forEach((line, i) => {
      if (line.dressed !== this.look) this.dress(line);
      line.dressed = this.look;
      line.tr.ariaRowIndex = String(this.first + i + 2);
      if (line.tr === at) at = at.nextElementSibling;
      else this.body.insertBefore(line.tr, at);
    });
    const [above, below] = [this.first, this.shown.length - this.last].map((rows) => `${rows * this.height()}px`);
    if (above === "0px" && below === "0px") this.body.removeAttribute("style");
    else this.body.style.padding = `${above} 0 ${below}`;
    if (held && !this.body.contains(document.activeElement)) this.region.focus({ preventScroll: true });
    this.drawn();
  }

  /** Scroll to the row at `place` of those shown, between heading and foot. @param {number} place */
  reveal(place) {
    const height = this.height(), top = place * height;
    const taken = (this.table.tHead?.offsetHeight ?? 0) + (this.table.tFoot?.offsetHeight ?? 0);
    const view = Math.max(height, this.region.clientHeight - taken);
    if (top < this.region.scrollTop) this.region.scrollTop = top;
    else if (top + height > this.region.scrollTop + view) this.region.scrollTop = top + height - view;
    this.follow();
    return this.shown[place].tr;
  }

  /** The place of a row among those shown; below 0 where it is none. @param {Element | null} tr */
  placeOf(tr) {
    return this.shown.findIndex((line) => line.tr === tr);
  }
}
