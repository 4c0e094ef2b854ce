/** A mention as files name it, from the number of its label and its spans. */
const named = ([type, ...spans], types) => ({ label: types[type], spans });

/** What makes mentions of other ones: pairs of a mention that is given and one that is suggested, or null. */
function changesBetween(before, after, types) {
  const key = (mention) => JSON.stringify(mention);
  const [old, now] = [new Set(before.map(key)), new Set(after.map(key))];
  const removed = before.filter((mention) => !now.has(key(mention)));
  const pairs = new Map();
  const added = after.filter((mention) => !old.has(key(mention)));
  const touch = (a, b) => wordsOf(a.slice(1)).some((word) => wordsOf(b.slice(1)).includes(word));
  const same = (a, b) => key(a.slice(1)) === key(b.slice(1));
  for (const fits of [same, (a, b) => a[0] === b[0] && touch(a, b), touch]) {
    for (const mention of added) {
      if (pairs.has(mention)) continue;
      const place = removed.findIndex((one) => fits(one, mention));
      if (place >= 0) pairs.set(mention, removed.splice(place, 1)[0]);
    }
  }
  const one = (mention) => (mention ? named(mention, types) : null);
  return [
    ...removed.map((mention) => ({ given: one(mention), suggested: null })),
    ...added.map((mention) => ({ given: one(pairs.get(mention)), suggested: one(mention) })),
  ];
}

/** Decisions about kept sentences or suspicious labels, stored in the browser, exported and imported. */
class Review {
  /**
   * @param pairs all pairs of the page.
   * @param digest identifies the data of the page; decisions are stored under it.
   * @param report is called with a message when decisions cannot be stored.
   */
  constructor(pairs, digest, report) {
    // A decision is "accept", "reject", or the changes of labels: what `changesBetween` gives.
    Object.assign(this, { pairs, key: `entaug-review-${digest}`, report, decisions: new Map(), past: [] });
    this.total = pairs.reduce((sum, pair) => sum + this.may(pair), 0);
    try {
      const kept = JSON.parse(localStorage.getItem(this.key) || "{}");
      for (const [i, decision] of Object.entries(kept)) {
        if (this.may(pairs[i]) && Review.known(decision, pairs[i])) this.decisions.set(Number(i), decision);
      }
    } catch {
      report("This browser does not store decisions for this page: export them before you close it.");
    }
  }

  static known(decision, pair) {
    if (decision === "accept" || decision === "reject") return true;
    const fits = (mention) => mention === null || (typeof mention?.label === "string" && mention.label
      && Array.isArray(mention.spans) && mention.spans.length > 0
      && mention.spans.every(([start, end], k) => Number.isInteger(start) && Number.isInteger(end) && start < end
        && start >= (k ? mention.spans[k - 1][1] : 0) && end <= withTokens(pair.m).t.length));
    return Array.isArray(decision) && decision.length > 0
      && decision.every((one) => one && (one.given || one.suggested) && fits(one.given) && fits(one.suggested));
  }

  /** Whether a pair can be decided on; sentences that were filtered out are only shown. */
  may(pair) {
    return pair !== undefined && pair.r === undefined;
  }

  of(i) {
    const decision = this.decisions.get(i) || "";
    return Array.isArray(decision) ? "correct" : decision;
  }

  /** The changes of labels of a pair; null if they are not corrected. */
  changes(i) {
    const decision = this.decisions.get(i);
    return Array.isArray(decision) ? decision : null;
  }

  /** Set the decision on a pair; "" removes it. */
  decide(i, decision) {
    if (!this.may(this.pairs[i])) return false;
    this.past.push([i, this.decisions.get(i)]);
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
    const counts = { accept: 0, reject: 0, correct: 0 };
    for (const i of this.decisions.keys()) counts[this.of(i)] += 1;
    return counts;
  }

  /** The decisions in the format that `--apply-review` reads, in the order of the page. */
  file() {
    const decisions = [...this.decisions.keys()].sort((a, b) => a - b).map((i) => {
      const pair = this.pairs[i];
      const decision = { fingerprint: pair.f, method: pair.n, id: pair.i, decision: this.of(i) };
      const changes = this.changes(i);
      if (changes) return { ...decision, correction: { of: pair.c ? pair.c.of : pair.f, changes } };
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
    const of = (one) => {
      const all = places.get(JSON.stringify([one.fingerprint.toLowerCase(), one.method || null])) || [];
      const same = all.filter((i) => this.pairs[i].i === one.id);
      return same.length ? same : all;
    };
    const decisionOf = (one) => (one.decision === "correct" ? one.correction?.changes : one.decision);
    read.decisions.forEach((one, i) => {  // check all before any is imported
      const fault = (what) => new Error(`Decision ${i + 1} ${what}.`);
      if (one === null || typeof one !== "object" || Array.isArray(one)) throw fault("is not an object");
      if (!/^[0-9a-f]{16}$/i.test(one.fingerprint)) throw fault("has no fingerprint of 16 hexadecimal digits");
      if (!["accept", "reject", "correct"].includes(one.decision)) throw fault("must be accept, reject or correct");
      if (of(one).some((k) => !Review.known(decisionOf(one), this.pairs[k]))) throw fault("has a correction that does not fit the sentence");
    });
    let taken = 0;
    let lost = 0;
    for (const one of read.decisions) {
      const found = of(one);
      if (!found.length) lost += 1;
      for (const i of found) {
        this.past.push([i, this.decisions.get(i)]);
        this.set(i, decisionOf(one));
        taken += 1;
      }
    }
    this.keep();
    return { taken, lost };
  }
}
