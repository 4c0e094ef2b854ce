/** The words of spans, in order. */
const wordsOf = (spans) => spans.flatMap(([start, end]) => Array.from({ length: end - start }, (_, k) => start + k));

/** The spans of words. */
function spansOf(words) {
  const spans = [];
  for (const i of [...words].sort((a, b) => a - b)) {
    if (spans.length && spans.at(-1)[1] === i) spans.at(-1)[1] = i + 1;
    else spans.push([i, i + 1]);
  }
  return spans;
}

/** Mentions in the order of the words, outer ones before inner ones. */
const inOrder = (mentions) => mentions.sort((a, b) => a[1][0] - b[1][0] || b.at(-1)[1] - a.at(-1)[1] || a[0] - b[0]);

/**
 * Corrects the labels of a sentence: words are selected and labelled; a mention that is chosen gets another label or other
 * words, or is removed. Spans that are not adjacent are one discontinuous mention.
 */
class Editor {
  /**
   * @param sentence the sentence, with tokens, spaces and language.
   * @param types names of the labels.
   * @param mentions those to begin with, each the number of its label and its spans.
   * @param done is called with the mentions to save, or with null.
   */
  constructor(sentence, types, mentions, done) {
    Object.assign(this, { sentence, types, done, selected: new Set(), chosen: null, at: 0, anchor: null });
    this.mentions = inOrder([...mentions]).map(([type, ...spans]) => ({ type, words: wordsOf(spans) }));
    this.root = element("div", "editor", null, { role: "group", "aria-label": "Correct the labels" });
    this.words = element("div", "words", null, {
      role: "listbox", "aria-multiselectable": "true", "aria-label": "Words", "aria-orientation": "horizontal",
      dir: "auto", lang: sentence.l || "",
    });
    this.chips = element("ul", "chips", null, { "aria-label": "Mentions" });
    this.labels = element("div", "chips", null, { role: "group", "aria-label": "Label of the selected words" });
    this.status = element("p", "aside", "", { role: "status" });
    this.remove = this.button("remove", "Remove mention", () => this.removeChosen());
    const foot = element("p", "buttons");
    foot.append(this.remove, this.button("save", "Save", () => this.save()), this.button("cancel", "Cancel", () => done(null)));
    this.drawWords();
    this.drawLabels();
    this.root.append(this.words, this.chips, this.labels, this.status, foot);
    this.root.addEventListener("keydown", (event) => this.keys(event));
    this.update();
  }

  button(does, text, act, attributes) {
    const button = element("button", does, text, { type: "button", ...attributes });
    button.dataset.does = does;
    button.addEventListener("click", act);
    return button;
  }

  drawWords() {
    this.sentence.t.forEach((token, i) => {
      const word = element("span", "word", token, { role: "option" });
      word.addEventListener("mousedown", (event) => {
        event.preventDefault();
        if (event.shiftKey && this.anchor !== null) this.extend(i);
        else {
          this.anchor = i;
          this.before = new Set(this.selected);
          this.toggle(i);
        }
        this.focus(i);
      });
      word.addEventListener("mouseover", (event) => event.buttons === 1 && this.anchor !== null && this.extend(i));
      this.words.append(word, " ");
    });
  }

  drawLabels() {
    this.types.forEach((name, type) => {
      const button = this.button(`label-${type}`, null, () => this.label(type));
      if (type < 9) button.append(element("kbd", "", String(type + 1)), " ");
      button.append(element("span", "", name, { dir: "auto" }));
      button.style.color = colourOf(type);
      this.labels.append(button);
    });
  }

  text(words) {
    return spansOf(words).map(([start, end]) => textOf(this.sentence, start, end)).join(" … ");
  }

  /** Show the state: lines under the words, the selection, the mentions. */
  update() {
    const { mentions, depth } = lanesOf(this.result());
    [...this.words.children].forEach((word, i) => {
      const lines = mentions.filter((one) => one.start <= i && i < one.end)
        .map((one) => [one.lane, one.type, one.spans.some(([start, end]) => start <= i && i < end)]);
      paintRun(word, lines, depth);
      word.setAttribute("aria-selected", this.selected.has(i));
      word.tabIndex = i === this.at ? 0 : -1;
    });
    const focused = this.chips.contains(document.activeElement) ? document.activeElement.dataset.does : null;
    const chip = (does, words, label, k) => {
      const button = this.button(does, null, () => this.choose(k), { "aria-pressed": this.chosen === k });
      button.append(element("span", "", words, { dir: "auto" }));
      if (label !== undefined) {
        const tag = element("span", "label", this.types[label], { dir: "auto" });
        tag.style.color = colourOf(label);
        button.append(" ", tag);
      }
      const item = element("li");
      item.append(button);
      return item;
    };
    this.chips.replaceChildren(
      ...this.mentions.map((one, k) => chip(`mention-${k}`, this.text(one.words) || "no words", one.type, k)),
      chip("new", "+ new mention", undefined, null),
    );
    if (focused) (this.chips.querySelector(`[data-does="${focused}"]`) || this.chips.querySelector("button")).focus();
    const type = this.chosen === null ? null : this.mentions[this.chosen].type;
    [...this.labels.children].forEach((button, k) => {
      button.setAttribute("aria-pressed", k === type);
      button.disabled = this.chosen === null && !this.selected.size;
    });
    this.remove.disabled = this.chosen === null;
    const words = this.text(this.selected);
    this.status.textContent = this.chosen !== null
      ? "Select its words or press a label to change the mention."
      : words ? `Press a label for: ${words}` : "Select the words of a new mention, or press a mention to change it.";
  }

  focus(i) {
    this.at = Math.max(0, Math.min(this.sentence.t.length - 1, i));
    [...this.words.children].forEach((word, k) => { word.tabIndex = k === this.at ? 0 : -1; });
    this.words.children[this.at].focus();
  }

  /** Select these words: those of the chosen mention, or of a new one. */
  select(words) {
    this.selected = new Set(words);
    if (this.chosen !== null) this.mentions[this.chosen].words = [...this.selected].sort((a, b) => a - b);
    this.update();
  }

  toggle(i) {
    const words = new Set(this.selected);
    if (!words.delete(i)) words.add(i);
    this.select(words);
  }

  /** Select, or take from the selection, all words from the anchor to a word. */
  extend(i) {
    const [start, end] = [Math.min(i, this.anchor), Math.max(i, this.anchor)];
    const range = wordsOf([[start, end + 1]]);
    const before = this.before || new Set();
    this.select(before.has(this.anchor) ? [...before].filter((word) => !range.includes(word)) : [...before, ...range]);
  }

  choose(k) {
    this.chosen = k;
    this.selected = new Set(k === null ? [] : this.mentions[k].words);
    this.anchor = null;
    if (this.selected.size) this.at = Math.min(...this.selected);
    this.update();
  }

  /** Label the chosen mention, or the selected words. */
  label(type) {
    if (this.chosen !== null) this.mentions[this.chosen].type = type;
    else if (this.selected.size) this.mentions.push({ type, words: [...this.selected].sort((a, b) => a - b) });
    else return;
    this.choose(null);
    this.root.querySelector('[data-does="new"]').focus({ preventScroll: true });
  }

  removeChosen() {
    if (this.chosen === null) return;
    this.mentions.splice(this.chosen, 1);
    this.choose(null);
    this.root.querySelector('[data-does="new"]').focus({ preventScroll: true });
  }

  /** The mentions, each once, in the order of the words. */
  result() {
    const found = this.mentions.filter((one) => one.words.length).map((one) => [one.type, ...spansOf(one.words)]);
    const each = new Map(found.map((one) => [JSON.stringify(one), one]));
    return inOrder([...each.values()]);
  }

  save() {
    this.done(this.result());
  }

  keys(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.save();
    else if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    else if (event.key === "Escape") {
      if (this.chosen !== null || this.selected.size) this.choose(null);
      else this.done(null);
    } else if (/^[1-9]$/.test(event.key) && event.key <= this.types.length) this.label(event.key - 1);
    else if (event.key === "Delete" || event.key === "Backspace") this.removeChosen();
    else if (event.target.closest(".words")) {
      const forward = getComputedStyle(this.words).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
      const last = this.sentence.t.length - 1;
      const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last }[event.key];
      const next = forward === "ArrowLeft" && event.key.startsWith("Arrow") ? 2 * this.at - to : to;
      if (event.key === " ") {
        this.anchor = this.at;
        this.before = new Set(this.selected);
        this.toggle(this.at);
      } else if (next === undefined || Number.isNaN(next)) return;
      else {
        if (event.shiftKey && this.anchor === null) {
          this.anchor = this.at;
          this.before = new Set(this.selected);
          this.before.delete(this.at);
        }
        if (!event.shiftKey) this.anchor = null;
        this.focus(next);
        if (event.shiftKey) this.extend(this.at);
      }
    } else return;
    event.preventDefault();
  }
}
