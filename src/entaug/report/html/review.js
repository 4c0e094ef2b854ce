/** Decisions about kept sentences: made, undone, kept by the browser, written to a file and read from one. */
class Review {
  /**
   * @param pairs all pairs of the page.
   * @param digest names the page's data; decisions are kept under it.
   * @param told is called with words when something cannot be kept.
   */
  constructor(pairs, digest, told) {
    Object.assign(this, { pairs, key: `entaug-review-${digest}`, told, made: new Map(), past: [] });
    try {
      const kept = JSON.parse(localStorage.getItem(this.key) || "{}");
      for (const [i, decision] of Object.entries(kept)) {
        if (this.may(pairs[i]) && Review.known(decision)) this.made.set(Number(i), decision);
      }
    } catch {
      told("This browser keeps nothing for this page: decisions are lost when it is closed, unless you export them.");
    }
  }

  static known(decision) {
    return decision === "accept" || decision === "reject";
  }

  /** Whether a pair can be decided on: drafts that were refused are only shown. */
  may(pair) {
    return pair !== undefined && pair.r === undefined;
  }

  of(i) {
    return this.made.get(i) || "";
  }

  /** Decide on a pair, or with "" on nothing. */
  decide(i, decision) {
    if (!this.may(this.pairs[i])) return false;
    this.past.push([i, this.of(i)]);
    this.set(i, decision);
    this.keep();
    return true;
  }

  set(i, decision) {
    if (decision) this.made.set(i, decision);
    else this.made.delete(i);
  }

  /** Take the last decision back: the number of its pair, or null where there is none. */
  undo() {
    const last = this.past.pop();
    if (!last) return null;
    this.set(...last);
    this.keep();
    return last[0];
  }

  keep() {
    try {
      localStorage.setItem(this.key, JSON.stringify(Object.fromEntries(this.made)));
    } catch {
      this.told("This browser cannot keep decisions: export them before you close the page.");
    }
  }

  counts() {
    let accept = 0;
    for (const decision of this.made.values()) accept += decision === "accept";
    return { accept, reject: this.made.size - accept };
  }

  /** The decisions as `entaug augment --apply-review` takes them, in the order of the page. */
  file() {
    const decisions = [...this.made.keys()].sort((a, b) => a - b).map((i) => {
      const pair = this.pairs[i];
      return { fingerprint: pair.f, method: pair.n, id: pair.i, decision: this.made.get(i) };
    });
    return { entaug: "review", version: 1, decisions };
  }

  /** Take decisions from such a file: how many were taken, and how many concern no sentence of the page. */
  take(read) {
    const good = read && read.entaug === "review" && Array.isArray(read.decisions);
    if (!good) throw new Error("This is no file of decisions: choose one that was exported here.");
    if (read.version !== 1) throw new Error(`This file has version ${read.version}; this page reads version 1.`);
    const places = new Map();
    this.pairs.forEach((pair, i) => {
      if (!this.may(pair)) return;
      for (const method of [pair.n, null]) {
        const name = JSON.stringify([pair.f, method]);
        if (!places.has(name)) places.set(name, []);
        places.get(name).push(i);
      }
    });
    read.decisions.forEach((one, i) => {  // all of it, before any is taken
      const amiss = (what) => new Error(`Decision ${i + 1} ${what}.`);
      if (one === null || typeof one !== "object" || Array.isArray(one)) throw amiss("is no object");
      if (!/^[0-9a-f]{16}$/i.test(one.fingerprint)) throw amiss("has no fingerprint of 16 hexadecimal digits");
      if (!Review.known(one.decision)) throw amiss("is neither accept nor reject");
    });
    let taken = 0;
    let lost = 0;
    for (const one of read.decisions) {
      const all = places.get(JSON.stringify([one.fingerprint.toLowerCase(), one.method || null])) || [];
      const same = all.filter((i) => this.pairs[i].i === one.id);
      const found = same.length ? same : all;
      if (!found.length) lost += 1;
      for (const i of found) {
        this.past.push([i, this.of(i)]);
        this.set(i, one.decision);
        taken += 1;
      }
    }
    this.keep();
    return { taken, lost };
  }
}
