/** Behaviour of the page: the definitions of measures, and the examples. */

/** Shows the definition of a measure beside its name, also on hover and focus. */
function definitions() {
  for (const button of document.querySelectorAll("button.definition-of")) {
    const box = $(button.getAttribute("popovertarget"));
    box.addEventListener("toggle", () => {
      const at = button.getBoundingClientRect();
      box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.offsetWidth - 8))}px`;
      const below = at.bottom + 6;
      box.style.top = `${below + box.offsetHeight < innerHeight ? below : Math.max(8, at.top - box.offsetHeight - 6)}px`;
    });
    button.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && box.showPopover());
    button.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && box.hidePopover());
    button.addEventListener("focus", () => button.matches(":focus-visible") && box.showPopover());
    button.addEventListener("blur", () => box.hidePopover());
    button.addEventListener("click", (event) => {
      event.preventDefault(); // a press does not close what hover or focus has opened
      box.showPopover();
    });
  }
}

const figure = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en");
const STATES = { accept: "✓ accepted", reject: "✗ rejected", correct: "✎ corrected" };
const ROLES = { source: "source", given: "as annotated", recipient: "source", donor: "source of the inserted words", other: "also used" };

function examples(data, digest) {
  const { pairs, types, methods, scores, reasons, gold } = data;
  const say = (text) => { $("message").textContent = text; };
  const review = new Review(pairs, digest, say);
  const editors = new Map(); // of pairs whose labels are being corrected
  let shown = [];
  let current = null; // the pair that keys act on
  let words = [];

  // Text for the search: the words of both sentences.
  const lower = (sentence) => (
    typeof sentence.t === "string" && !sentence.s ? sentence.t : textOf(sentence)
  ).toLowerCase();
  const goldText = gold.map(lower);
  const text = pairs.map((pair) => `${lower(pair.m)}\n${pair.s.map(([i]) => goldText[i]).join("\n")}`);

  // Minimum and maximum of each score.
  const ranges = scores.map((_, k) => {
    const values = pairs.map((pair) => pair.v[k]).filter((value) => value !== null);
    return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  });

  /** The sentence whose labels a reviewer corrects: as it is in the file that is corrected. */
  const base = (pair) => (pair.c ? gold[pair.s[0][0]] : pair.m);

  /** The number of a label; one that only an imported correction has is added. */
  function typeOf(label) {
    if (!types.includes(label)) types.push(label);
    return types.indexOf(label);
  }

  /** The mentions of a pair, corrected if they are. */
  function mentionsOf(i) {
    const changes = review.changes(i);
    if (!changes) return pairs[i].m.m;
    const encoded = (mention) => [typeOf(mention.label), ...mention.spans];
    const given = new Set(changes.filter((one) => one.given).map((one) => JSON.stringify(encoded(one.given))));
    const now = changes.filter((one) => one.suggested).map((one) => encoded(one.suggested));
    return [...base(pairs[i]).m.filter((mention) => !given.has(JSON.stringify(mention))), ...now];
  }

  function side(title, sentence, marks, note) {
    const box = element("div", "side");
    box.append(element("h4", "", title));
    if (sentence instanceof Editor) box.append(sentence.root);
    else if (sentence) box.append(drawSentence(sentence, marks, types, words));
    else box.append(element("p", "sentence none", note));
    return box;
  }

  /** The class that gives a pair the colour of its method; kinds of findings have none. */
  const mark = (pair) => (methods[pair.g].colour === undefined ? "" : `made method-${methods[pair.g].colour}`);

  /** What a teacher changed in the labels, or doubts. */
  function teacherSays(changes) {
    const list = element("ul", "teacher", null, { "aria-label": "Teacher" });
    for (const [change, label, words, probability] of changes) {
      const item = element("li", change, `${change} by the teacher: `, { dir: "auto" });
      item.append(element("b", "", words), ` ${label}`);
      if (probability !== null) item.append(` (probability ${figure.format(probability)})`);
      list.append(item);
    }
    return list;
  }

  /** What a reviewer changed, in words. */
  function correctionList(pair, changes) {
    const list = element("ul", "teacher corrections", null, { "aria-label": "Corrections" });
    const text = (mention) => mention.spans.map(([start, end]) => textOf(pair.m, start, end)).join(" … ");
    for (const { given, suggested } of changes) {
      const item = element("li", "", given ? (suggested ? "corrected: " : "removed: ") : "added: ", { dir: "auto" });
      const put = (mention) => item.append(element("b", "", text(mention)), ` ${mention.label}`);
      if (given) put(given);
      if (given && suggested) item.append(" → ");
      if (suggested) put(suggested);
      list.append(item);
    }
    return list;
  }

  /** Open the editor of labels of a pair, or close it. */
  function edit(i) {
    const pair = pairs[i];
    if (!review.may(pair)) {
      say("This sentence was filtered out already and is not corrected.");
      return;
    }
    goTo(i, false);
    if (editors.has(i)) {
      close(i);
      return;
    }
    say("");
    editors.set(i, new Editor(withTokens(pair.m), types, mentionsOf(i), (mentions) => saved(i, mentions)));
    feed.again(i);
    feed.render(); // which measures the row with the editor
    goTo(i, true);
    editors.get(i).focus(0);
  }

  function close(i) {
    editors.delete(i);
    feed.again(i);
    feed.rows.get(i)?.querySelector('[data-does="correct"]')?.focus({ preventScroll: true });
  }

  /** Keep corrected labels: those of the suggestion accept it, those as they were change nothing. */
  function saved(i, mentions) {
    editors.delete(i);
    if (mentions) {
      const pair = pairs[i];
      const changes = changesBetween(base(pair).m, mentions, types);
      const suggested = pair.c && !changesBetween(pair.m.m, mentions, types).length;
      decide(i, suggested ? "accept" : changes.length ? changes : pair.c ? "reject" : "");
      if (!changes.length) say(pair.c ? "The label stays as it is annotated." : "No label is changed.");
    }
    close(i);
  }

  function provenance(pair) {
    const box = element("details");
    const summary = element("summary", "", "Signature and scores");
    summary.dataset.does = "provenance";
    box.append(summary);
    box.addEventListener("toggle", () => {
      if (!box.open || box.querySelector("dl")) return;
      const list = element("dl");
      const entries = { method: pair.n || "unknown", signature: methods[pair.g].signature, id: pair.i };
      const put = (name, value, description) => {
        if (value === null || value === undefined) return;
        const row = element("div", "", null, description && { title: description });
        row.append(element("dt", "", name), element("dd", "", typeof value === "string" ? value : JSON.stringify(value)));
        list.append(row);
      };
      for (const [name, value] of Object.entries(entries)) put(name, value);
      scores.forEach((score, k) => {
        if (!score.always) put(score.title, pair.v[k], score.description);
      });
      box.append(list);
    });
    return box;
  }

  function draw(i, place, of) {
    const pair = pairs[i];
    const row = element("article", `pair ${mark(pair)}`, null, {
      tabindex: "-1", "aria-posinset": place + 1, "aria-setsize": of, "aria-labelledby": `pair-${i}`, "data-pair": i,
    });
    if (i === current) row.classList.add("current");
    const head = element("header");
    if (mark(pair)) head.append(element("span", "mark", methods[pair.g].symbol, { "aria-hidden": "true" }));
    head.append(element("h3", "", methods[pair.g].name || "unknown method", { id: `pair-${i}`, dir: "auto" }));
    if (pair.i !== null) head.append(element("span", "name", pair.i, { dir: "auto" }));
    const decision = review.of(i);
    if (pair.r !== undefined) head.append(element("span", "state filtered", `filtered out: ${reasons[pair.r]}`));
    else if (decision) head.append(element("span", `state ${decision}`, STATES[decision]));
    const teacher = pair.t ? teacherSays(pair.t) : null;
    const sides = element("div", "sides");
    const left = element("div");
    for (const [number, role, marks] of pair.s) left.append(side(ROLES[role], gold[number], marks));
    if (!pair.s.length) left.append(side("source", null, null, "unknown"));
    const right = element("div");
    const changes = review.changes(i);
    const title = pair.c ? "suggested" : pair.a ? "augmented, rewritten" : "augmented";
    const editor = editors.get(i);
    if (editor) right.append(side("correct the labels", editor));
    else if (changes) right.append(side(`${pair.c ? "" : "augmented, "}corrected`, { ...pair.m, m: mentionsOf(i) }, pair.d));
    else right.append(side(title, pair.m, pair.d));
    if (changes && !editor) right.append(correctionList(pair, changes));
    const list = element("ul", "scores", null, { "aria-label": "Scores" });
    const selected = [$("score").value, $("order").value.split(" ")[0]];
    scores.forEach((score, k) => {
      if (pair.v[k] === null || !(score.always || selected.includes(String(k)))) return;
      const item = element("li", "", `${score.title} `, { title: score.description });
      item.append(element("b", "", figure.format(pair.v[k])));
      list.append(item);
    });
    if (teacher) right.append(teacher);
    if (pair.p) right.append(element("p", "why", pair.p, { dir: "auto" }));
    if (pair.w) right.append(element("p", "teacher", pair.w, { dir: "auto" }));
    sides.append(left, right);
    const foot = element("footer");
    if (!pair.c) foot.append(provenance(pair));
    if (list.childElementCount) foot.append(list);
    if (review.may(pair)) {
      const buttons = element("span", "buttons");
      for (const [name, title] of [["accept", "Accept"], ["reject", "Reject"]]) {
        const button = element("button", name, title, { type: "button", "aria-pressed": decision === name });
        button.dataset.does = name;
        button.addEventListener("click", () => {
          goTo(i, false);
          decide(i, review.of(i) === name ? "" : name);
        });
        buttons.append(button);
      }
      const correct = element("button", "correct", "Correct", { type: "button", "aria-pressed": decision === "correct" });
      correct.dataset.does = "correct";
      correct.setAttribute("aria-expanded", editor !== undefined);
      correct.addEventListener("click", () => edit(i));
      buttons.append(correct);
      foot.append(buttons);
    }
    row.append(head, sides, foot);
    return row;
  }

  // An estimate from the number of letters in a line; everything but text is about as high as three lines.
  function guess(width) {
    const wide = matchMedia("(min-width: 46.01rem)").matches;
    const letters = Math.max(20, (wide ? width / 2 - 40 : width - 30) / 8.2);
    const high = (sentence, length) => 28 * Math.ceil((length + 7 * sentence.m.length) / letters);
    return (i) => {
      const pair = pairs[i];
      const left = pair.s.reduce((sum, [number]) => sum + 50 + high(gold[number], goldText[number].length), 0);
      const right = 50 + high(pair.m, text[i].indexOf("\n"));
      return 96 + (pair.p ? 24 * Math.ceil(pair.p.length / letters) : 0) + (wide ? Math.max(left, right) : left + right);
    };
  }

  const feed = new Feed($("feed"), draw, guess);
  const covered = () => $("bar").offsetHeight + parseFloat(getComputedStyle($("bar")).top);
  // What gets the focus is scrolled to a place below the bar.
  new ResizeObserver(() => $("feed").style.setProperty("--covered", `${covered()}px`)).observe($("bar"));

  function decided() {
    const { accept, reject, correct } = review.counts();
    const [judged, total] = [review.decisions.size, review.total].map(whole.format);
    $("progress").value = review.decisions.size;
    $("judged").textContent = `${judged} of ${total}`;
    $("decided").textContent = `${whole.format(accept)} accepted, ${whole.format(reject)} rejected, ${whole.format(correct)} corrected`;
    $("undo").disabled = !review.past.length;
    $("export").disabled = !review.decisions.size;
  }

  function decide(i, decision) {
    if (!review.decide(i, decision)) {
      say("This sentence was filtered out already and needs no decision.");
      return false;
    }
    say("");
    feed.again(i);
    decided();
    return true;
  }

  function undo() {
    const i = review.undo();
    if (i === null) return;
    decided();
    feed.again(i);
    goTo(i, true);
  }

  /** Make a pair the current one, and scroll to it if wanted. */
  function goTo(i, move) {
    const before = current;
    current = i;
    if (before !== null && before !== i) feed.rows.get(before)?.classList.remove("current");
    const place = shown.indexOf(i);
    if (place < 0) return;
    const row = move ? feed.reveal(place, covered()) : feed.rows.get(i);
    row?.classList.add("current");
    if (move) row?.focus({ preventScroll: true });
  }

  function step(by) {
    if (!shown.length) return;
    const place = current === null ? -1 : shown.indexOf(current);
    const row = place < 0 ? null : feed.rows.get(current);
    const seen = row && row.getBoundingClientRect().bottom > covered() && row.getBoundingClientRect().top < innerHeight;
    const next = seen ? place + by : feed.firstSeen(covered());
    goTo(shown[Math.max(0, Math.min(shown.length - 1, next))], true);
  }

  function apply() {
    words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [method, type, reason, decision, teacher] =
      ["method", "type", "reason", "decision", "teacher"].map((id) => $(id).value);
    const score = $("score").value === "" ? -1 : Number($("score").value);
    for (const [id, end] of [["least", 0], ["most", 1]]) {
      $(id).disabled = score < 0;
      $(id).placeholder = score < 0 ? "" : figure.format(ranges[score][end]);
    }
    const number = (id) => ($(id).value === "" ? null : Number($(id).value));
    const [least, most] = [number("least"), number("most")];
    shown = [];
    pairs.forEach((pair, i) => {
      if (method !== "" && pair.g !== Number(method)) return;
      if (reason === "kept" ? pair.r !== undefined : reason !== "" && pair.r !== Number(reason)) return;
      if (type !== "" && !mentionsOf(i).some(([of]) => of === Number(type))) return;
      if (decision && (decision === "none" ? review.of(i) || pair.r !== undefined : review.of(i) !== decision)) return;
      if (teacher && (teacher === "none" ? pair.t : !pair.t?.some(([of]) => teacher === "any" || teacher === of))) return;
      if (score >= 0 && (least !== null || most !== null)) {
        const value = pair.v[score];
        if (value === null || (least !== null && value < least) || (most !== null && value > most)) return;
      }
      if (!words.every((word) => text[i].includes(word))) return;
      shown.push(i);
    });
    const [by, way] = $("order").value.split(" ").map(Number);
    if (way) {
      const last = way * Infinity; // those without a score come last either way
      const of = (i) => pairs[i].v[by] ?? last;
      shown.sort((a, b) => (of(a) === of(b) ? a - b : way * (of(a) - of(b))));
    }
    for (const button of $("legend").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", button.dataset.type === type);
    }
    const within = $("feed").getBoundingClientRect().top < 0;
    feed.show(shown);
    if (within) scrollBy({ top: $("feed").getBoundingClientRect().top - covered() - 8, behavior: "instant" });
    feed.root.querySelector(".nothing")?.remove();
    if (!shown.length) feed.root.append(element("p", "nothing", "No example matches. Change the search or clear the filters."));
    $("count").textContent = `${whole.format(shown.length)} of ${whole.format(pairs.length)} shown`;
  }

  function choices() {
    const option = (to, value, title) => to.append(element("option", "", title, { value }));
    option($("method"), "", "all");
    methods.forEach((method, i) => option($("method"), i, method.name || "unknown"));
    option($("type"), "", "all");
    types.forEach((type, i) => option($("type"), i, type));
    option($("reason"), "", reasons.length ? "kept and filtered out" : "all");
    option($("reason"), "kept", "kept only");
    reasons.forEach((reason, i) => option($("reason"), i, `filtered out: ${reason}`));
    $("reason").parentElement.hidden = !reasons.length;
    // Sentences that were filtered out are shown on demand, or if there are no others.
    if (reasons.length && pairs.some((pair) => pair.r === undefined)) $("reason").options[1].defaultSelected = true;
    const changes = [...new Set(pairs.flatMap((pair) => (pair.t || []).map(([of]) => of)))].sort();
    for (const [value, title] of [["", "any"], ["any", "label changed or doubted"], ["none", "agrees"]]) {
      option($("teacher"), value, title);
    }
    changes.forEach((change) => option($("teacher"), change, `mention ${change}`));
    const suspicion = scores.findIndex((score) => score.name === "teacher");
    $("teacher").parentElement.hidden = suspicion < 0;
    if (suspicion >= 0) option($("order"), `${suspicion} -1`, "suspicious labels first");
    option($("score"), "", "any");
    scores.forEach((score, i) => {
      option($("score"), i, score.title);
      if (i === suspicion) return; // its order has a name of its own
      option($("order"), `${i} 1`, `${score.title}: lowest first`);
      option($("order"), `${i} -1`, `${score.title}: highest first`);
    });
    const counts = new Array(types.length).fill(0);
    for (const pair of pairs) for (const [type] of pair.m.m) counts[type] += 1;
    types.forEach((type, i) => {
      const button = element("button", "", null, { type: "button", "aria-pressed": "false", "data-type": i });
      const sample = element("span", "run", type, { dir: "auto" });
      sample.style.color = colourOf(i);
      sample.style.borderBottom = `2px solid ${colourOf(i)}`;
      button.append(sample, element("span", "n", whole.format(counts[i])));
      button.addEventListener("click", () => {
        $("type").value = $("type").value === String(i) ? "" : i;
        apply();
      });
      const item = element("li");
      item.append(button);
      $("legend").append(item);
    });
  }

  function save() {
    const blob = new Blob([`${JSON.stringify(review.file(), null, 1)}\n`], { type: "application/json" });
    const link = element("a", "", "", { download: "review.json", href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function load(file) {
    try {
      let read;
      try {
        read = JSON.parse(await file.text());
      } catch {
        throw new Error("This is not JSON. Choose a file that was exported from a report.");
      }
      const { taken, lost } = review.take(read);
      const rest = lost ? `; ${whole.format(lost)} concern no sentence of this page` : "";
      say(`${whole.format(taken)} decision${taken === 1 ? "" : "s"} imported${rest}.`);
    } catch (error) {
      say(error.message);
    }
    decided();
    apply();
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("keys").open) return;
    if (event.target.closest(".editor")) return; // it has keys of its own
    const typing = event.target.closest("input, select, textarea");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    const within = event.target.closest("#feed");
    const go = { j: 1, k: -1, ...(within && { ArrowDown: 1, ArrowUp: -1 }) }[event.key];
    const decision = { a: "accept", r: "reject" }[event.key];
    if (go) step(go);
    else if (decision) {
      if (current === null || !shown.includes(current)) step(1);
      else if (decide(current, decision)) step(1);
    } else if (event.key === "c") {
      if (current === null || !shown.includes(current)) step(1);
      else edit(current);
    } else if (event.key === "u") undo();
    else if (event.key === "p") feed.rows.get(current)?.querySelector("summary")?.click();
    else if (event.key === "/") {
      $("search").focus();
      $("search").select();
    } else if (event.key === "?") $("keys").showModal();
    else return;
    event.preventDefault();
  }

  choices();
  $("progress").max = review.total;
  for (const id of ["search", "least", "most"]) $(id).addEventListener("input", apply);
  for (const id of ["method", "type", "reason", "decision", "teacher", "order", "score"]) $(id).addEventListener("change", apply);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => {
    $("filters").reset();
    apply();
  });
  const unfold = (open) => {
    $("choices").hidden = !open;
    $("more").setAttribute("aria-expanded", open);
  };
  $("more").addEventListener("click", () => unfold($("choices").hidden));
  unfold(matchMedia("(min-width: 46.01rem)").matches);
  $("undo").addEventListener("click", undo);
  $("export").addEventListener("click", save);
  $("import").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => {
    if ($("file").files.length) load($("file").files[0]);
    $("file").value = "";
  });
  $("help").addEventListener("click", () => $("keys").showModal());
  $("feed").addEventListener("click", (event) => {
    const row = event.target.closest(".pair");
    if (row) goTo(Number(row.dataset.pair), false);
  });
  document.addEventListener("keydown", keys);
  apply();
  decided();
}

theme();
definitions();
if ($("feed")) examples(JSON.parse($("data").textContent), $("data").dataset.digest);
