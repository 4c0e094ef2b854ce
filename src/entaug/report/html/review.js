/** Decisions about kept sentences or suspicious labels, stored in the browser, exported and imported. */
class Review {
  /**
   * @param pairs all pairs of the page.
   * @param digest identifies the data of the page; decisions are stored under it.
   * @param report is called with a message when decisions cannot be stored.
   */
  constructor(pairs, digest, report) {
    Object.assign(this, { pairs, key: `entaug-review-${digest}`, report, decisions: new Map(), past: [] });
    try {
      const kept = JSON.parse(localStorage.getItem(this.key) || "{}");
      for (const [i, decision] of Object.entries(kept)) {
        if (this.may(pairs[i]) && Review.known(decision)) this.decisions.set(Number(i), decision);
      }
    } catch {
      report("This browser does not store decisions for this page: export them before you close it.");
    }
  }

  static known(decision) {
    return decision === "accept" || decision === "reject";
  }

  /** Whether a pair can be decided on; sentences that were filtered out are only shown. */
  may(pair) {
    return pair !== undefined && pair.r === undefined;
  }

  of(i) {
    return this.decisions.get(i) || "";
  }

  /** Set the decision on a pair; "" removes it. */
  decide(i, decision) {
    if (!this.may(this.pairs[i])) return false;
    this.past.push([i, this.of(i)]);
    this.set(i, decision);
    this.keep();
    return true;
  }

  set(i, decision) {
    if (decision) this.decisions.set(i, decision);
    else this.decisions.delete(i);
  }

  /** Undo the last decision and return the number of its pair; null if there is none. */
  undo() {
    const last = this.past.pop();
    if (!last) return null;
    this.set(...last);
    this.keep();
    return last[0];
  }

  keep() {
    try {
      localStorage.setItem(this.key, JSON.stringify(Object.fromEntries(this.decisions)));
    } catch {
      this.report("This browser cannot store decisions: export them before you close the page.");
    }
  }

  counts() {
    let accept = 0;
    for (const decision of this.decisions.values()) accept += decision === "accept";
    return { accept, reject: this.decisions.size - accept };
  }

  /** The decisions in the format that `--apply-review` reads, in the order of the page. */
  file() {
    const decisions = [...this.decisions.keys()].sort((a, b) => a - b).map((i) => {
      const pair = this.pairs[i];
      const decision = { fingerprint: pair.f, method: pair.n, id: pair.i, decision: this.decisions.get(i) };
      return pair.c ? { ...decision, correction: pair.c } : decision;
    });
    return { entaug: "review", version: 1, decisions };
  }

  /** Import decisions; return how many were imported, and how many concern no sentence of the page. */
  take(read) {
    const good = read && read.entaug === "review" && Array.isArray(read.decisions);
    if (!good) throw new Error("This is not a file of decisions. Choose one that was exported from a report.");
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
    read.decisions.forEach((one, i) => {  // check all before any is imported
      const fault = (what) => new Error(`Decision ${i + 1} ${what}.`);
      if (one === null || typeof one !== "object" || Array.isArray(one)) throw fault("is not an object");
      if (!/^[0-9a-f]{16}$/i.test(one.fingerprint)) throw fault("has no fingerprint of 16 hexadecimal digits");
      if (!Review.known(one.decision)) throw fault("must be accept or reject");
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
