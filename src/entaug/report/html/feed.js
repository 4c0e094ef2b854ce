/**
 * A list of which only what is near the window is in the document.
 *
 * Heights are guessed until a row has been seen, then known; what is above the window may turn out higher or lower than
 * guessed, and then the window is moved by as much, so that nothing jumps.
 */
class Feed {
  /**
   * @param root the element for the rows.
   * @param draw makes the row of an item.
   * @param guess given the width of the list, a function that guesses the height of an item, in pixels.
   */
  constructor(root, draw, guess) {
    Object.assign(this, { root, draw, guess, items: [], sizes: [], at: [0], width: 0, waits: false });
    this.rows = new Map(); // of items near the window
    this.heights = new Map(); // of items that were seen, at this width
    const later = () => this.later();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    this.observer = new ResizeObserver(later);
    this.observer.observe(root);
  }

  /** Show these items, from the first where wanted. */
  show(items) {
    this.items = items;
    this.clear();
    this.width = 0; // nothing is known of where these stand
    this.render();
  }

  clear() {
    for (const row of this.rows.values()) this.drop(row);
    this.rows.clear();
  }

  drop(row) {
    this.observer.unobserve(row);
    if (row.contains(document.activeElement)) this.root.focus({ preventScroll: true });
    row.remove();
  }

  later() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.render();
    });
  }

  /** Where each item begins, and at the end where the last ends, from an item on: those before stand where they stood. */
  place(from = 0) {
    for (let i = from; i < this.items.length; i += 1) this.at[i + 1] = this.at[i] + this.sizes[i];
  }

  render() {
    const width = this.root.clientWidth;
    if (width !== this.width) {
      if (this.width) this.heights.clear();
      this.width = width;
      const guess = this.guess(width);
      this.sizes = Float64Array.from(this.items, (item) => this.heights.get(item) ?? guess(item));
      this.at = new Float64Array(this.items.length + 1);
      this.place();
    }
    for (let turn = 0; turn < 4; turn += 1) {
      if (!this.fill()) break;
    }
  }

  /** One turn of putting rows where they belong; whether a height was not as thought. */
  fill() {
    const { at } = this;
    const above = -this.root.getBoundingClientRect().top;
    const tall = innerHeight;
    const first = Math.max(0, this.find(at, above - tall / 2));
    const last = Math.min(this.items.length, this.find(at, above + 1.5 * tall) + 1);
    const wanted = new Set(this.items.slice(first, last));
    for (const [item, row] of this.rows) {
      if (wanted.has(item)) continue;
      this.drop(row);
      this.rows.delete(item);
    }
    let before = null;
    for (let i = first; i < last; i += 1) {
      const item = this.items[i];
      let row = this.rows.get(item);
      if (!row) {
        row = this.draw(item, i, this.items.length);
        this.rows.set(item, row);
        this.observer.observe(row);
      }
      const next = before ? before.nextSibling : this.root.firstChild;
      if (next !== row) this.root.insertBefore(row, next);
      before = row;
    }
    this.root.style.paddingTop = `${at[first]}px`;
    this.root.style.paddingBottom = `${at[this.items.length] - at[last]}px`;
    return this.measure(first, last, above);
  }

  /** Learn the heights of the rows that are there; whether one was not as thought. */
  measure(first, last, above) {
    const seen = this.find(this.at, above);
    let shift = 0;
    let changed = false;
    for (let i = first; i < last; i += 1) {
      const row = this.rows.get(this.items[i]);
      const height = row.offsetHeight + parseFloat(getComputedStyle(row).marginBottom);
      const thought = this.sizes[i];
      this.heights.set(this.items[i], height);
      if (Math.abs(height - thought) < 0.5) continue;
      this.sizes[i] = height;
      changed = true;
      if (i < seen) shift += height - thought;
    }
    if (changed) this.place(first);
    if (shift && above > 0) scrollBy({ top: shift, behavior: "instant" });
    return changed;
  }

  /** The last item that begins at or before a place. */
  find(at, place) {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (at[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return Math.min(low, Math.max(0, this.items.length - 1));
  }

  /** Bring an item into the window, below what covers its top. */
  reveal(number, covered) {
    for (let turn = 0; turn < 3; turn += 1) {
      const { at } = this;
      const top = this.root.getBoundingClientRect().top + at[number];
      const bottom = top + (at[number + 1] - at[number]);
      if (top >= covered && bottom <= innerHeight) break;
      const tooTall = bottom - top > innerHeight - covered;
      const by = top < covered || tooTall ? top - covered - 8 : bottom - innerHeight + 8;
      if (Math.abs(by) < 1) break;
      scrollBy({ top: by, behavior: "instant" });
      this.render();
    }
    return this.rows.get(this.items[number]);
  }

  /** The number of the first item that is to be seen below what covers the top. */
  firstSeen(covered) {
    const { at } = this;
    const above = covered - this.root.getBoundingClientRect().top;
    const number = this.find(at, above);
    return at[number] < above - 4 && number + 1 < this.items.length ? number + 1 : number;
  }

  /** Draw an item anew where it is shown. */
  again(item) {
    const old = this.rows.get(item);
    if (!old) return;
    const row = this.draw(item, this.items.indexOf(item), this.items.length);
    const focused = old.contains(document.activeElement);
    const which = focused ? document.activeElement.dataset.does : null;
    old.replaceWith(row);
    this.observer.unobserve(old);
    this.rows.set(item, row);
    this.observer.observe(row);
    const same = which && row.querySelector(`[data-does="${which}"]`);
    if (focused) (same || row).focus({ preventScroll: true });
  }
}
