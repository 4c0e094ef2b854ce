/** The ratings of each rater who has used this page in this browser: stored, exported and imported. */
class Ratings {
  /**
   * @param data scales and items of the page.
   * @param digest identifies the data of the page; ratings are stored under it.
   * @param report is called with a message when ratings cannot be stored.
   */
  constructor(data, digest, report) {
    Object.assign(this, { data, digest, key: `entaug-ratings-${digest}`, report, raters: new Map(), rater: "", past: [] });
    try {
      const kept = JSON.parse(localStorage.getItem(this.key) || "{}");
      for (const [name, rows] of kept.raters || []) {
        const clean = this.empty();
        clean.forEach((row, i) => data.items[i].a.forEach((s) => { row[s] = this.known(rows[i]?.[s]) ? rows[i][s] : 0; }));
        this.raters.set(name, clean);
      }
      this.last = typeof kept.last === "string" ? kept.last : "";
    } catch {
      this.last = "";
      report("This browser does not store ratings for this page: export them before you close it.");
    }
  }

  known(rating) {
    return Number.isInteger(rating) && rating >= this.data.lowest && rating <= this.data.highest;
  }

  /** A rating of each item on each scale; 0 where there is none. */
  empty() {
    return this.data.items.map(() => this.data.scales.map(() => 0));
  }

  /** Begin or go on as the rater of a name. */
  enter(name) {
    this.rater = name;
    this.past = [];
    if (!this.raters.has(name)) this.raters.set(name, this.empty());
    this.keep();
  }

  get rows() {
    return this.raters.get(this.rater) || [];
  }

  of(i, s) {
    return this.rows[i]?.[s] || 0;
  }

  /** Rate item i on scale s; 0 removes the rating. */
  rate(i, s, rating) {
    if (this.of(i, s) === rating) return;
    this.past.push([i, s, this.of(i, s)]);
    this.rows[i][s] = rating;
    this.keep();
  }

  /** Undo the last rating and return the number of its item; null if there is none. */
  undo() {
    const last = this.past.pop();
    if (!last) return null;
    const [i, s, before] = last;
    this.rows[i][s] = before;
    this.keep();
    return i;
  }

  /** Whether an item has a rating on each scale that applies to it. */
  isRated(i) {
    return this.data.items[i].a.every((s) => this.of(i, s));
  }

  counts() {
    let rated = 0;
    let ratings = 0;
    this.rows.forEach((row, i) => {
      rated += this.isRated(i);
      ratings += row.filter(Boolean).length;
    });
    return { rated, ratings };
  }

  keep() {
    try {
      localStorage.setItem(this.key, JSON.stringify({ last: this.rater, raters: [...this.raters] }));
    } catch {
      this.report("This browser cannot store ratings: export them before you close the page.");
    }
  }

  /** The ratings as JSON lines for `entaug ratings`. */
  text() {
    const lines = [{ entaug: "ratings", version: 1, page: this.digest, rater: this.rater }];
    this.rows.forEach((row, i) => row.forEach((rating, s) => {
      if (rating) lines.push({ item: i + 1, scale: this.data.scales[s].name, rating });
    }));
    return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  }

  /** Import ratings and go on as their rater; all or, if a line is faulty, none. */
  take(text) {
    const lines = text.replace(/^\ufeff/, "").split("\n").map((line, i) => [line.trim(), i + 1]).filter(([line]) => line);
    const fault = (number, what) => new Error(`Line ${number} ${what}. Choose a file that was exported from this page.`);
    const read = lines.map(([line, number]) => {
      let value;
      try {
        value = JSON.parse(line);
      } catch { /* reported below */ }
      if (value === null || typeof value !== "object" || Array.isArray(value)) throw fault(number, "is not a JSON object");
      return [value, number];
    });
    const [head] = read.shift() || [{}];
    if (head.entaug !== "ratings") throw fault(1, "does not begin a file of ratings");
    if (head.version !== 1) throw fault(1, `has version ${head.version} of the format; this page reads version 1`);
    if (head.page !== this.digest) throw fault(1, "names another page");
    if (typeof head.rater !== "string" || !head.rater.trim()) throw fault(1, "names no rater");
    const scales = this.data.scales.map((scale) => scale.name);
    for (const [one, number] of read) {
      const item = Number.isInteger(one.item) ? this.data.items[one.item - 1] : undefined;
      if (!item) throw fault(number, "names no item of this page");
      if (!item.a.includes(scales.indexOf(one.scale))) throw fault(number, "names no scale of this item");
      if (!this.known(one.rating)) throw fault(number, `needs a rating from ${this.data.lowest} to ${this.data.highest}`);
    }
    this.enter(head.rater.trim());
    for (const [one] of read) this.rows[one.item - 1][scales.indexOf(one.scale)] = one.rating;
    this.keep();
    return read.length;
  }
}
