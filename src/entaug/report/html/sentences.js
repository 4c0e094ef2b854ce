/** An element with a class, text and attributes; text is always text, never markup. */
function element(tag, classes, text, attributes) {
  const created = document.createElement(tag);
  if (classes) created.className = classes;
  if (text !== undefined && text !== null) created.textContent = text;
  for (const [name, value] of Object.entries(attributes || {})) created.setAttribute(name, value);
  return created;
}

/** A sentence of the data with its tokens as an array; most are never needed so. */
function withTokens(sentence) {
  if (typeof sentence.t === "string") sentence.t = sentence.t.split(" ");
  return sentence;
}

/** The white space after a token. */
const spaceAfter = (sentence, i) => (sentence.s ? sentence.s[i] : " ");

/** Some of the words of a sentence, as they are written. */
function textOf(sentence, start = 0, end = undefined) {
  return withTokens(sentence).t.slice(start, end).map((token, k) => token + spaceAfter(sentence, start + k)).join("").trimEnd();
}

/** Which tokens a search finds; a word goes over several where there is no space between them, as in Chinese. */
function foundTokens(sentence, words) {
  const { t } = withTokens(sentence);
  const found = new Array(t.length).fill(false);
  if (!words.length) return found;
  const starts = [];
  let text = "";
  t.forEach((token, i) => {
    starts.push(text.length);
    text += token.toLowerCase() + spaceAfter(sentence, i);
  });
  for (const word of words) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      const first = starts.findLastIndex((start) => start <= at);
      for (let i = first; i < t.length && starts[i] < at + word.length; i += 1) found[i] = true;
    }
  }
  return found;
}

const colourOf = (type) => `var(--type-${type % 12})`;

/**
 * Assign mentions to lanes, the lines under the words. Mentions in a lane do not overlap, and an inner mention is nearer to
 * the words than the mention around it. The gap of a discontinuous mention is a dashed line in its lane.
 */
function lanesOf(mentions) {
  const ordered = mentions.map(([type, ...spans]) => ({ type, spans, start: spans[0][0], end: spans.at(-1)[1] }));
  ordered.sort((a, b) => (a.end - a.start) - (b.end - b.start) || a.start - b.start);
  const lanes = [];
  for (const one of ordered) {
    // A mention must be below every mention inside it.
    const least = 1 + lanes.findLastIndex((lane) => lane.some((o) => one.start <= o.start && o.end <= one.end));
    const isFree = (lane) => lane.every((other) => other.end <= one.start || one.end <= other.start);
    one.lane = lanes.findIndex((lane, number) => number >= least && isFree(lane));
    if (one.lane < 0) one.lane = lanes.push([]) - 1;
    lanes[one.lane].push(one);
  }
  let parts = 0;
  for (const one of [...ordered].sort((a, b) => a.start - b.start)) {
    if (one.spans.length > 1) one.number = (parts += 1);
  }
  return { mentions: ordered, depth: lanes.length };
}

/** The mark of each token, from ranges. */
function markedTokens(length, marks) {
  const kinds = new Array(length).fill("");
  for (const [start, end, kind] of marks || []) kinds.fill(kind, start, end);
  return kinds;
}

/**
 * Draw a sentence with its mentions, marks and search hits.
 *
 * It consists of runs: longest sequences of tokens, and of spaces between tokens, over which all of these are the same.
 */
function drawSentence(sentence, marks, typeNames, words) {
  const tokens = withTokens(sentence).t;
  const { mentions, depth } = lanesOf(sentence.m);
  const kinds = markedTokens(tokens.length, marks);
  const found = foundTokens(sentence, words);
  const line = element("p", "sentence", null, { dir: "auto", lang: sentence.l || "" });
  line.style.lineHeight = `calc(1.6em + ${4 * Math.max(0, depth - 1)}px)`;

  // Lines under the token at `at`, or if `gap` under the space after it.
  function under(at, gap, but) {
    const found = [];
    for (const one of mentions) {
      if (one.start > at || one.end <= (gap ? at + 1 : at) || (but && but.includes(one))) continue;
      const solid = one.spans.some(([start, end]) => start <= at && (gap ? at + 1 < end : at < end));
      found.push([one.lane, one.type, solid]);
    }
    return found;
  }
  let run = null;
  let same = null;
  function put(text, lines, kind, hit) {
    const key = `${lines.join("|")} ${kind} ${hit}`;
    if (key !== same) {
      run = drawRun(lines, depth);
      const inner = kind ? run.appendChild(element("mark", kind)) : run;
      run.inner = hit ? inner.appendChild(element("span", "hit")) : inner;
      line.append(run);
      same = key;
    }
    run.inner.append(text);
  }
  for (let i = 0; i < tokens.length; i += 1) {
    put(tokens[i], under(i, false), kinds[i], found[i]);
    const ended = mentions.filter((one) => one.spans.some(([, end]) => end === i + 1));
    ended.sort((a, b) => a.lane - b.lane);
    ended.forEach((one, k) => {
      const tag = drawRun(under(i, false, ended.slice(0, k + 1).filter((o) => o.end === i + 1)), depth);
      const last = one.end === i + 1;
      if (last) tag.append(element("span", "label", typeNames[one.type], { dir: "auto" }));
      if (one.number) tag.append(element("span", "part", String(one.number)));
      tag.classList.toggle("labels", last);
      tag.style.color = colourOf(one.type);
      line.append(tag);
      same = null;
    });
    const space = spaceAfter(sentence, i);
    if (space && i + 1 < tokens.length) {
      const goesOn = kinds[i] === kinds[i + 1] && !ended.length;
      put(space, under(i, true), goesOn ? kinds[i] : "", false);
    }
  }
  return line;
}

function drawRun(lines, depth) {
  const run = element("span", "run");
  if (lines.length) paintRun(run, lines, depth);
  return run;
}

/** Draw lines under an element, each given by its lane, its type, and whether it is solid. */
function paintRun(run, lines, depth) {
  const of = (type, solid) => solid
    ? `linear-gradient(${colourOf(type)}, ${colourOf(type)})`
    : `repeating-linear-gradient(90deg, ${colourOf(type)} 0 3px, transparent 3px 7px)`;
  run.style.backgroundImage = lines.map(([, type, solid]) => of(type, solid)).join(",");
  run.style.backgroundPosition = lines.map(([lane]) => `0 calc(100% - ${4 * (depth - 1 - lane)}px)`).join(",");
  run.style.backgroundSize = "100% 2px";
  run.style.paddingBottom = `${4 * depth}px`;
}
