/** Behaviour of the page for raters: one item after the other, by mouse, touch and keyboard. */
function rating(data, digest) {
  const { items, scales, types, lowest, highest } = data;
  const whole = new Intl.NumberFormat("en");
  const noun = scales[0].judges === "group" ? "Group" : "Text";
  const say = (text) => { $("message").textContent = text; };
  const ratings = new Ratings(data, digest, say);
  let current = 0;

  /** Whether the original may be seen: scales of the text alone are rated first, unaffected by it. */
  function isRevealed(i) {
    const { o, a } = items[i];
    return o !== undefined && a.every((s) => scales[s].judges !== "text" || ratings.of(i, s))
      && a.some((s) => scales[s].judges !== "text");
  }

  const visible = (i) => items[i].a.filter((s) => scales[s].judges === "text" || isRevealed(i));
  const firstMissing = (i) => visible(i).find((s) => !ratings.of(i, s));

  function drawTexts() {
    const { t, o } = items[current];
    const parts = [];
    if (isRevealed(current) || t.length > 1) parts.push(element("h2", "", t.length > 1 ? "New texts" : "New text"));
    if (t.length > 1) {
      const list = element("ol");
      for (const sentence of t) list.appendChild(element("li")).append(drawSentence(sentence, null, types, []));
      parts.push(list);
    } else parts.push(drawSentence(t[0], null, types, []));
    if (isRevealed(current)) {
      const box = element("div", "original");
      box.append(element("h2", "", "Original"), drawSentence(o, null, types, []));
      parts.push(box);
    }
    $("texts").replaceChildren(...parts);
  }

  function drawScale(s) {
    const { name, question, anchors } = scales[s];
    const box = element("fieldset", "", null, { tabindex: "-1", "data-scale": s });
    const legend = element("legend", "", null, { dir: "auto" });
    legend.append(element("b", "", name), question);
    const points = element("div", anchors.length === 2 ? "points" : "points each");
    for (let n = lowest; n <= highest; n += 1) {
      const label = element("label");
      const input = element("input", "", null, { type: "radio", name: `scale-${s}`, value: n });
      input.checked = ratings.of(current, s) === n;
      input.addEventListener("change", () => {
        rate(s, n);
        $("scales").querySelector(`[data-scale="${s}"] input:checked`)?.focus();
      });
      const anchor = anchors.length === 2 ? { [lowest]: anchors[0], [highest]: anchors[1] }[n] : anchors[n - lowest];
      label.append(input, element("span", "n", String(n)));
      if (anchor) label.append(element("span", "anchor", anchor, { dir: "auto" }));
      points.append(label);
    }
    box.append(legend, points);
    return box;
  }

  function draw() {
    $("place").textContent = `${noun} ${whole.format(current + 1)} of ${whole.format(items.length)}`;
    drawTexts();
    $("scales").replaceChildren(...visible(current).map(drawScale));
    mark();
    $("previous").disabled = current === 0;
  }

  /** Show which scale the keys rate, and how much is done. */
  function mark() {
    const next = firstMissing(current);
    for (const box of $("scales").children) box.classList.toggle("current", box.dataset.scale === String(next));
    const { rated, ratings: given } = ratings.counts();
    $("progress").value = rated;
    $("rated").textContent = `${whole.format(rated)} of ${whole.format(items.length)}`;
    $("export").disabled = !given;
    $("undo").disabled = !ratings.past.length;
  }

  /** Set a rating; the original may appear, or vanish, by it. */
  function rate(s, value) {
    const before = isRevealed(current);
    ratings.rate(current, s, value);
    if (before === isRevealed(current)) mark();
    else {
      draw();
      if (!before) $("status").textContent = "The original is shown now, and further scales.";
    }
    say("");
  }

  function show(section) {
    for (const name of ["start", "rate", "end"]) $(name).hidden = name !== section;
  }

  function goTo(i) {
    current = Math.max(0, Math.min(items.length - 1, i));
    show("rate");
    draw();
    $("place").focus();
    if ($("place").getBoundingClientRect().top < 50) scrollTo(0, 0);
  }

  function finish() {
    const { rated } = ratings.counts();
    const missing = items.length - rated;
    $("end-title").textContent = missing ? "The last one is done" : "All done, thank you";
    $("end-text").textContent = missing
      ? `${whole.format(missing)} of ${whole.format(items.length)} lack a rating. You can go back to them, or export what you have.`
      : "Export your ratings to a file, and send it to whoever asked you to rate.";
    show("end");
    $("end-title").focus();
  }

  const step = (by) => (current + by < items.length ? goTo(current + by) : finish());

  /** Go to the next item that lacks a rating, from the one after the current; at the end to the beginning. */
  function nextMissing(from = current + 1) {
    for (let k = 0; k < items.length; k += 1) {
      const i = (from + k) % items.length;
      if (!ratings.isRated(i)) return goTo(i);
    }
    return finish();
  }

  function undo() {
    const i = ratings.undo();
    if (i !== null) goTo(i);
  }

  function begin(name) {
    ratings.enter(name);
    say("");
    nextMissing(0);
  }

  function save() {
    const blob = new Blob([ratings.text()], { type: "application/x-ndjson" });
    const slug = ratings.rater.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "rater";
    const link = element("a", "", "", { download: `ratings-${slug}.jsonl`, href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function load(file) {
    try {
      const taken = ratings.take(await file.text());
      $("name").value = ratings.rater;
      nextMissing(0);
      say(`${whole.format(taken)} rating${taken === 1 ? "" : "s"} of ${ratings.rater} imported.`);
    } catch (error) {
      say(error.message);
    }
  }

  /** Rate by a key: the scale that has the focus, else the first without a rating. */
  function rateByKey(value) {
    const focused = document.activeElement.closest("fieldset[data-scale]");
    const s = focused ? Number(focused.dataset.scale) : firstMissing(current);
    if (s === undefined || (!value && !focused)) return;
    rate(s, value);
    draw();
    const next = firstMissing(current);
    if (!value) $("scales").querySelector(`[data-scale="${s}"]`).focus();
    else if (next === undefined) step(1);
    else $("scales").querySelector(`[data-scale="${next}"]`).focus();
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("keys").open) return;
    if (event.target.closest("input:not([type=radio]), select, textarea")) return;
    if (event.key === "?") $("keys").showModal();
    else if ($("rate").hidden) return;
    else if (/^[0-9]$/.test(event.key)) {
      const value = Number(event.key);
      if (value && (value < lowest || value > highest)) return;
      rateByKey(value);
    } else if (event.key === "j") step(1);
    else if (event.key === "k") goTo(current - 1);
    else if (event.key === "n") nextMissing();
    else if (event.key === "u") undo();
    else return;
    event.preventDefault();
  }

  $("name").value = ratings.last;
  $("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = $("name").value.trim();
    if (name) begin(name);
    else say("Enter a name or a code first.");
  });
  $("scales").addEventListener("submit", (event) => event.preventDefault());
  $("previous").addEventListener("click", () => goTo(current - 1));
  $("next").addEventListener("click", () => step(1));
  $("missing").addEventListener("click", () => nextMissing());
  $("undo").addEventListener("click", undo);
  $("back").addEventListener("click", () => goTo(Math.max(0, items.findIndex((_, i) => !ratings.isRated(i)))));
  $("export").addEventListener("click", save);
  $("export-at-end").addEventListener("click", save);
  $("import").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => {
    if ($("file").files.length) load($("file").files[0]);
    $("file").value = "";
  });
  $("help").addEventListener("click", () => $("keys").showModal());
  document.addEventListener("keydown", keys);
}

theme();
rating(JSON.parse($("data").textContent), $("data").dataset.digest);
