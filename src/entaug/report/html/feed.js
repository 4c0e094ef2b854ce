/**
 * A list of which only the rows near the viewport are in the document.
 *
 * Heights are estimated until a row has been drawn. When rows above the viewport turn out higher or lower, the page
 * scrolls by the difference, so that nothing jumps.
 */
class Feed {
  /**
   * @param root the element for the rows.
   * @param draw creates the row of an item.
   * @param guess takes the width of the list and returns a function that estimates the height of an item, in pixels.
   */
  constructor(root, draw, guess) {
    Object.assign(this, { root, draw, guess, items: [], sizes: [], at: [0], width: 0, waits: false });
    this.rows = new Map(); // of items near the viewport
    this.heights = new Map(); // of items drawn at this width
    const later = () => this.later();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    this.observer = new ResizeObserver(later);
    this.observer.observe(root);
  }

  /** Show these items. */
  show(items) {
    this.items = items;
    this.clear();
    this.width = 0; // forces new positions
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

  /** Compute the start of each item after `from`, and the end of the last. */
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

  /** Draw the rows near the viewport; return whether a height differed from its estimate. */
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

  /** Measure the rows; return whether a height differed from its estimate. */
  measure(first, last, above) {
    const seen = this.find(this.at, above);
    let shift = 0;
    let changed = false;
    for (let i = first; i < last; i += 1) {
      const row = this.rows.get(this.items[i]);
      const height = row.offsetHeight + parseFloat(getComputedStyle(row).marginBottom);
      const estimate = this.sizes[i];
      this.heights.set(this.items[i], height);
      if (Math.abs(height - estimate) < 0.5) continue;
      this.sizes[i] = height;
      changed = true;
      if (i < seen) shift += height - estimate;
    }
    if (changed) this.place(first);
    if (shift && above > 0) scrollBy({ top: shift, behavior: "instant" });
    return changed;
  }

  /** The last item that starts at or before a position. */
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

  /** Scroll an item into the viewport, below the part covered at the top. */
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

  /** The number of the first visible item below the part covered at the top. */
  firstSeen(covered) {
    const { at } = this;
    const above = covered - this.root.getBoundingClientRect().top;
    const number = this.find(at, above);
    return at[number] < above - 4 && number + 1 < this.items.length ? number + 1 : number;
  }

  /** Redraw an item if it is shown. */
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
