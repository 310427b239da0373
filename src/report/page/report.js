// The report of a comparison, drawn from the two JSON blocks of the page.
//
// Everything in them that comes from a file (names, shapes, reasons) is hostile until shown otherwise: it
// reaches the page through textContent and nothing else, and no string becomes markup, a style or an address.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const parse = (id) => JSON.parse(byId(id).textContent);
  const diff = parse("data-diff"), values = parse("data-values");
  const pairs = diff.pairs;

  const VERDICTS = {
    diverged: "diverged", error: "error", within: "within", identical: "identical", only_a: "only in A", only_b: "only in B",
  };
  // One shape for each verdict, in a box of 10 by 10.
  const SHAPES = {
    diverged: "M5 0L10 5L5 10L0 5Z", error: "M5 .5L10 9.5H0Z", within: "M5 1.5a3.5 3.5 0 1 0 .01 0Z",
    identical: "M5 1.75a3.25 3.25 0 1 0 .01 0Z", only_a: "M1.5 1.5V8.5H5", only_b: "M8.5 1.5V8.5H5",
  };

  const kindWords = (kind) => kind.replaceAll("_", " ");

  // --- small tools ------------------------------------------------------------------------------------------

  function element(tag, properties, ...children) {
    const e = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {}))
      key in e ? (e[key] = value) : e.setAttribute(key, value);
    e.append(...children.filter((child) => child !== null && child !== undefined));
    return e;
  }

  function drawing(tag, attributes, ...children) {
    const e = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
    e.append(...children);
    return e;
  }

  function mark(verdict) {
    return drawing("svg", { class: "mark " + verdict, viewBox: "0 0 10 10", "aria-hidden": "true" }, drawing("path", { d: SHAPES[verdict] }));
  }

  // NaN and infinities come as strings.
  const number = (x) => (x === "inf" ? Infinity : x === "-inf" ? -Infinity : typeof x === "number" ? x : NaN);

  function short(x, digits = 3) {
    const v = number(x);
    if (!Number.isFinite(v)) return Number.isNaN(v) ? "nan" : v > 0 ? "inf" : "-inf";
    if (v === 0) return "0";
    const size = Math.abs(v);
    return size >= 1e-3 && size < 1e5 ? String(Number(v.toPrecision(digits))) : v.toExponential(digits - 1).replace("e+", "e");
  }

  const shapeText = (shape) => "[" + shape.join(", ") + "]";
  const placeText = (p) => (p.layer === null ? p.name : "layer " + p.layer + ", " + p.stage);
  // A NaN or infinity that the other side does not have at that place is no small error, whatever the rest adds up
  // to. Equal counts prove nothing: the places may be others, or the signs. But such an element is the worst of its
  // pair before any other; and where no worst are kept, a pair that diverged without a difference has nothing else.
  const isLost = (p) => {
    const m = p.metrics, worst = p.worst && p.worst[0];
    if (!m) return false;
    if (m.nan_a !== m.nan_b || m.inf_a !== m.inf_b) return true;
    if (m.nan_a + m.inf_a === 0 || p.verdict !== "diverged") return false;
    return worst ? !Number.isFinite(number(worst.a)) || !Number.isFinite(number(worst.b)) : number(m.max_abs) === 0;
  };
  const errorOf = (p) => (isLost(p) ? Infinity : p.metrics ? number(p.metrics.rel_l2) : NaN);
  const lostWord = (p) => (p.metrics.nan_a !== p.metrics.nan_b || (p.worst || []).some((w) => Number.isNaN(number(w.a)) || Number.isNaN(number(w.b))) ? "nan" : "inf");
  const errorText = (p) => (isLost(p) ? lostWord(p) : short(p.metrics.rel_l2));
  const isFirst = (p) => diff.first_divergence !== null && p.index === diff.first_divergence.index;

  function whyText(p) {
    if (p.diagnosis && p.diagnosis.length) return kindWords(p.diagnosis[0].kind);
    if (p.origin === "inherited") return "inherited";
    return p.verdict === "error" ? p.reason : "";
  }

  const isSure = (p) => !(p.sure < 0.9);
  const doubtText = (p) => (!p.a || !p.b ? "" : isSure(p) ? p.strategy : p.strategy + ", " + Math.floor(100 * p.sure + 1e-9) + " % sure");

  // How the two were found; below nine in ten it is a guess, and says so.
  function pairedBy(p) {
    if (!p.a || !p.b) return "";
    const words = [doubtText(p)];
    if (p.evidence) words.push(p.evidence);
    return words.join(", ");
  }

  const alsoText = (p, side) => p.aliases[side].filter((name) => !p[side] || name !== p[side].name).join(", ");

  // --- the chart --------------------------------------------------------------------------------------------

  const chart = { points: [], at: -1, svg: null, ring: null };

  function decades(list) {
    const finite = [];
    for (const p of list)
      for (const v of [errorOf(p), p.floor])
        if (v > 0 && Number.isFinite(v)) finite.push(Math.log10(v));
    if (!finite.length) return { low: -8, high: 0 };
    const low = Math.floor(finite.reduce((a, b) => Math.min(a, b))), high = Math.ceil(finite.reduce((a, b) => Math.max(a, b)));
    return { low, high: Math.max(high, low + 1) };
  }

  function scales(list, width, height) {
    const box = { left: 58, right: width - 14, top: 28, bottom: height - 26 };
    const { low, high } = decades(list);
    const zero = list.some((p) => errorOf(p) === 0), lost = list.some((p) => !Number.isFinite(errorOf(p)));
    const top = box.top + (lost ? 18 : 0), bottom = box.bottom - (zero ? 28 : 0);
    const step = (box.right - box.left) / list.length;
    const y = (v) => {
      if (v === 0) return box.bottom - 6;
      if (!Number.isFinite(v)) return box.top + 2;
      return bottom - ((Math.log10(v) - low) / (high - low)) * (bottom - top);
    };
    return { box, low, high, zero, lost, step, y, x: (i) => box.left + (i + 0.5) * step };
  }

  function drawBands(svg, list, s) {
    const labels = [];
    let shaded = false;
    for (let from = 0, to; from < list.length; from = to) {
      for (to = from; to < list.length && list[to].layer === list[from].layer; ) to++;
      const x = s.box.left + from * s.step, width = (to - from) * s.step, layer = list[from].layer;
      if (shaded) svg.append(drawing("rect", { class: "band", x, y: s.box.top - 20, width, height: s.box.bottom - s.box.top + 20 }));
      shaded = !shaded;
      if (layer === null) continue;
      const text = width > 58 ? "layer " + layer : String(layer);
      labels.push({ text, center: x + width / 2, half: 4 * text.length });
    }
    drawLayers(svg, labels, s);
  }

  // As many layers are named as there is room for, in equal steps.
  function drawLayers(svg, labels, s) {
    const apart = (x, y) => !x || !y || x.center + x.half + 4 <= y.center - y.half;
    const fits = (every) => labels.every((label, i) => i % every !== 0 || apart(labels[i - every], label));
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find(fits) || labels.length;
    labels.forEach(({ text, center }, i) => {
      if (i % every !== 0) return;
      const label = drawing("text", { class: "axis", x: center, y: s.box.bottom + 17, "text-anchor": "middle" });
      label.textContent = text;
      svg.append(label);
    });
  }

  function drawAxis(svg, s) {
    const tick = (y, text) => {
      svg.append(drawing("line", { class: "grid", x1: s.box.left, x2: s.box.right, y1: y, y2: y }));
      const label = drawing("text", { class: "axis", x: s.box.left - 8, y: y + 4, "text-anchor": "end" });
      label.textContent = text;
      svg.append(label);
    };
    const every = Math.ceil((s.high - s.low) / 7), plain = s.low >= -4 && s.high <= 4;
    for (let e = s.low; e <= s.high; e += every) tick(s.y(10 ** e), plain ? String(Number((10 ** e).toPrecision(2))) : "1e" + e);
    if (s.zero) tick(s.y(0), "0");
    if (s.lost) tick(s.y(Infinity), "inf, nan");
  }

  function drawLines(svg, list, s) {
    let floor = "", trail = "";
    list.forEach((p, i) => {
      const x = s.box.left + i * s.step;
      if (p.floor > 0) floor += (i && list[i - 1].floor > 0 ? "L" : "M") + x.toFixed(1) + " " + s.y(p.floor).toFixed(1) + "h" + s.step.toFixed(2);
      if (errorOf(p) > 0) trail += (trail ? "L" : "M") + s.x(i).toFixed(1) + " " + s.y(errorOf(p)).toFixed(1);
    });
    svg.append(drawing("path", { class: "trail", d: trail }), drawing("path", { class: "floor", d: floor }));
  }

  function pointText(p) {
    const floor = p.floor > 0 ? ", noise floor " + short(p.floor) : "", why = whyText(p);
    const error = measured(p) ? "relative error " + errorText(p) + floor + ", " : "";
    return placeText(p) + ": " + error + VERDICTS[p.verdict] + (why ? " (" + why + ")" : "");
  }

  function drawPoints(svg, list, s) {
    const size = s.step < 4 ? 0.55 : s.step < 8 ? 0.75 : 1;
    list.forEach((p, i) => {
      const scale = size * (isFirst(p) ? 1.25 : p.verdict === "diverged" ? 0.9 : 0.8), title = drawing("title");
      title.textContent = pointText(p);
      const point = drawing("path", {
        class: "point " + p.verdict + (isFirst(p) ? " first" : ""), d: SHAPES[p.verdict],
        transform: `translate(${s.x(i).toFixed(1)} ${s.y(errorOf(p)).toFixed(1)}) scale(${scale}) translate(-5 -5)`,
      }, title);
      point.addEventListener("click", () => choose(p, true));
      point.addEventListener("mouseenter", () => moveCursor(i));
      svg.append(point);
    });
  }

  // Above all points, with a line down to its own: what follows is often higher.
  function drawCall(svg, list, s) {
    const i = list.findIndex(isFirst);
    if (i < 0) return;
    const x = s.x(i), left = x > (s.box.left + s.box.right) / 2;
    const call = drawing("text", { class: "call", x: x + (left ? -6 : 6), y: 12, "text-anchor": left ? "end" : "start" });
    call.textContent = (diff.order === "unknown" ? "largest" : "first") + " divergence: " + placeText(list[i]);
    svg.append(drawing("line", { class: "call", x1: x, x2: x, y1: 2, y2: Math.max(s.y(errorOf(list[i])) - 8, 2) }), call);
  }

  function drawChart() {
    const list = chart.points, width = Math.max(byId("plot").clientWidth, 320), height = width > 1500 ? 320 : 260;
    const s = (chart.scale = scales(list, width, height));
    const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, tabindex: "0", role: "img", "aria-label": "Relative error of each pair in the order of execution. Left and right move along, Enter shows the pair." });
    drawBands(svg, list, s);
    drawAxis(svg, s);
    drawLines(svg, list, s);
    drawPoints(svg, list, s);
    drawCall(svg, list, s);
    chart.ring = drawing("circle", { class: "cursor", r: 8, visibility: "hidden" });
    svg.append(chart.ring);
    svg.addEventListener("keydown", chartKey);
    byId("plot").replaceChildren(svg);
    if (chart.at >= 0) moveCursor(chart.at);
  }

  function moveCursor(i) {
    const p = chart.points[i], s = chart.scale;
    chart.at = i;
    chart.ring.setAttribute("cx", s.x(i));
    chart.ring.setAttribute("cy", s.y(errorOf(p)));
    chart.ring.setAttribute("visibility", "visible");
    byId("readout").textContent = pointText(p);
  }

  function chartKey(event) {
    const last = chart.points.length - 1;
    const to = { ArrowLeft: Math.max(chart.at - 1, 0), ArrowRight: Math.min(chart.at + 1, last), Home: 0, End: last }[event.key];
    if (to !== undefined) moveCursor(to);
    else if (event.key === "Enter" && chart.at >= 0) choose(chart.points[chart.at], true);
    else return;
    event.preventDefault();
  }

  function showChart() {
    chart.points = pairs.filter((p) => p.metrics);
    if (chart.points.length < 2) return;
    const dash = drawing("svg", { width: 26, height: 8, "aria-hidden": "true" }, drawing("path", { class: "floor", d: "M0 4h26" }));
    for (const verdict of ["identical", "within", "diverged"])
      if (diff.summary[verdict]) byId("legend").append(element("span", {}, mark(verdict), verdict));
    if (chart.points.some((p) => p.floor > 0)) byId("legend").append(element("span", {}, dash, "noise floor"));
    byId("readout").textContent = "Relative L2 error, logarithmic, in the order of execution.";
    byId("chart").hidden = false;
    drawChart();
    let width = byId("plot").clientWidth;
    new ResizeObserver(() => {
      if (byId("plot").clientWidth === width) return;
      width = byId("plot").clientWidth;
      drawChart();
    }).observe(byId("plot"));
  }

  // --- what is known about one pair -------------------------------------------------------------------------

  function findingsList(diagnosis) {
    const list = element("ol", { className: "findings" });
    // "unknown" closes every diagnosis; behind one that is likely it would deny it.
    const worthReading = diagnosis.filter((f, i) => i === 0 || f.kind !== "unknown" || diagnosis[0].confidence < 0.5);
    for (const f of worthReading) {
      const bar = element("i", {});
      bar.style.setProperty("--share", String(Math.min(Math.max(number(f.confidence), 0), 1)));
      const meter = element("span", { className: "meter" }, bar, short(100 * number(f.confidence), 3) + " % confidence");
      list.append(element("li", {}, element("span", { className: "kind" }, kindWords(f.kind)),
        ...(f.kind === "unknown" ? [] : [meter]), element("span", { className: "why" }, f.detail)));
    }
    return list;
  }

  function worstTable(worst) {
    const head = element("tr", {}, ...["element", "A", "B", "B \u2212 A"].map((t) => element("th", { scope: "col" }, t)));
    const rows = worst.map((w) => element("tr", {}, ...[shapeText(w.index), short(w.a, 6), short(w.b, 6), short(w.difference, 4)].map((t) => element("td", {}, t))));
    return element("table", { className: "small" }, element("thead", {}, head), element("tbody", {}, ...rows));
  }

  function titled(title, content) {
    return element("div", {}, element("h3", {}, title), content);
  }

  function valueCell(v, largest, worst) {
    const value = number(v), cell = element("td", {}, short(v, 3));
    if (!Number.isFinite(value)) {
      cell.className = "lost";
    } else if (value !== 0 && largest > 0) {
      cell.className = value > 0 ? "plus" : "minus";
      cell.style.setProperty("--depth", (0.08 + 0.92 * Math.min(Math.abs(value) / largest, 1)).toFixed(3));
    }
    if (worst) cell.classList.add("worst");
    return cell;
  }

  function largestOf(...grids) {
    let largest = 0;
    for (const v of grids.flat(2)) if (Number.isFinite(number(v))) largest = Math.max(largest, Math.abs(number(v)));
    return largest;
  }

  function valueGrid(title, grid, largest) {
    const head = element("tr", {}, element("th", {}), ...values.columns.map((c) => element("th", { scope: "col" }, String(c))));
    const rows = grid.map((line, r) => element("tr", {}, element("th", { scope: "row" }, values.rows.length > 1 ? String(values.rows[r]) : ""),
      ...line.map((v, c) => valueCell(v, largest, r === values.worst[0] && c === values.worst[1]))));
    const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
    return titled(title + "  " + values.slice, element("div", { className: "slice", tabIndex: 0, role: "region", "aria-label": title }, table));
  }

  function valueGrids() {
    const both = largestOf(values.a, values.b);
    const grids = element("div", { className: "grids" }, valueGrid("A", values.a, both), valueGrid("B", values.b, both), valueGrid("B \u2212 A", values.difference, largestOf(values.difference)));
    const key = element("div", { className: "key" }, "negative", element("span", { className: "ramp", "aria-hidden": "true" }), "positive; deeper is larger, A and B on one scale, the difference on its own; the worst element is framed");
    return element("div", {}, grids, key);
  }

  // Whether any two values are both finite: else the zeros among the metrics mean nothing.
  const measured = (p) => Boolean(p.metrics && p.metrics.argmax);

  function factsLine(p) {
    const line = element("p", { className: "facts" });
    const fact = (name, text) => line.append(line.childNodes.length ? " \u00b7 " : "", name + " ", element("b", {}, text));
    fact("shape", shapeText(p.layout.shape));
    if (measured(p)) {
      const rest = isLost(p) ? " where both are finite" : "";
      fact("relative error", errorText(p));
      if (p.floor > 0) fact("noise floor", short(p.floor));
      fact("max abs" + rest, short(p.metrics.max_abs));
      fact("cosine" + rest, short(p.metrics.cosine, 6));
    }
    fact("beyond tolerance", p.metrics.beyond + " of " + p.metrics.count);
    if (p.layout.steps.length) fact("layout", p.layout.steps.join("; "));
    return line;
  }

  function showFirst() {
    if (!diff.first_divergence) return;
    const p = pairs[diff.first_divergence.index], body = byId("first-body");
    const go = element("button", { type: "button" }, "Show in the table");
    go.addEventListener("click", () => choose(p, true));
    byId("first-title").append(": ", element("span", { className: "place" }, placeText(p)), " ", go);
    body.append(factsLine(p));
    const columns = element("div", { className: "columns" });
    if (diff.first_divergence.diagnosis.length) columns.append(titled("What it looks like", findingsList(diff.first_divergence.diagnosis)));
    if (p.worst) columns.append(titled("Worst elements", worstTable(p.worst)));
    body.append(columns);
    if (values && values.error) body.append(element("p", { className: "dim" }, "The values could not be read: " + values.error));
    else if (values) body.append(valueGrids());
    byId("first").hidden = false;
  }

  function definitions(entries) {
    const list = element("dl", {});
    for (const [name, text] of entries)
      if (text !== null && text !== undefined && text !== "") list.append(element("dt", {}, name), element("dd", {}, text));
    return list;
  }

  const sideText = (side) => (side ? side.name + "  " + side.dtype + " " + shapeText(side.shape) + (side.shards ? " x " + side.shards + " shards" : "") : "none");

  function showDetail(p) {
    const close = element("button", { type: "button", className: "close" }, "Close"), m = p.metrics, box = byId("detail");
    close.addEventListener("click", () => { box.hidden = true; byId("scroller").focus(); });
    const columns = element("div", { className: "columns" });
    columns.append(definitions([["A", sideText(p.a)], ["B", sideText(p.b)], ["paired by", pairedBy(p)], ["A also", alsoText(p, "a")], ["B also", alsoText(p, "b")],
      ["layout", p.layout ? shapeText(p.layout.shape) + (p.layout.by_value ? ", by value" : "") : ""], ["steps", p.layout ? p.layout.steps.join("; ") : ""], ["origin", p.origin]]));
    if (m) {
      const counted = ["nan_a", "nan_b", "inf_a", "inf_b"].filter((k) => m[k]).map((k) => [k, String(m[k])]);
      const known = (key, digits) => [key, measured(p) && m[key] !== null ? short(m[key], digits) : ""];
      columns.append(definitions([known("rel_l2", 6), ["floor", p.floor ? short(p.floor, 4) : ""], ...["max_abs", "mean_abs", "max_rel", "mean_rel", "rmse"].map((k) => known(k, 6))]),
        definitions([known("cosine", 8), known("snr_db", 5), ["beyond", m.beyond + " of " + m.count], known("max_ulp", 6),
          ["argmax", m.argmax ? shapeText(m.argmax) + ": " + short(m.argmax_a, 6) + " against " + short(m.argmax_b, 6) : ""], ...counted]));
    }
    if (p.diagnosis) columns.append(titled("What it looks like", findingsList(p.diagnosis)));
    if (p.worst) columns.append(titled("Worst elements", worstTable(p.worst)));
    box.replaceChildren(close, element("h3", {}, mark(p.verdict), placeText(p)), element("p", { className: "reason dim" }, p.reason), columns);
    box.hidden = false;
  }

  // --- the table --------------------------------------------------------------------------------------------
  // Only the rows in sight exist. Rows have fixed heights, so that the place of each follows from its number.

  const HEIGHT = { layer: 30, pair: 38 }, OVERSCAN = 400;
  const both = (p, get) => [p.a ? get(p.a) : "", p.b ? get(p.b) : ""];
  // Sums leave out what is not finite: of a pair that lost values they would say that it agrees.
  const metric = (get) => ({
    number: true,
    value: (p) => (!measured(p) ? null : isLost(p) ? Infinity : number(get(p.metrics))),
    text: (p) => (!measured(p) ? "" : isLost(p) ? lostWord(p) : short(get(p.metrics))),
  });
  const COLUMNS = [
    { title: "#", width: 48, number: true, value: (p) => p.index, text: (p) => String(p.index) },
    { title: "layer", width: 56, number: true, value: (p) => p.layer, text: (p) => (p.layer === null ? "" : String(p.layer)) },
    { title: "stage", width: 168, value: (p) => p.stage, text: (p) => p.stage },
    { title: "verdict", width: 104, kind: "verdict", value: (p) => Object.keys(VERDICTS).indexOf(p.verdict), text: (p) => VERDICTS[p.verdict] },
    { title: "rel error", width: 88, ...metric((m) => m.rel_l2) },
    { title: "floor", width: 76, number: true, value: (p) => (p.floor > 0 ? p.floor : null), text: (p) => (p.floor > 0 ? short(p.floor, 2) : "") },
    { title: "max abs", width: 84, ...metric((m) => m.max_abs) },
    { title: "cosine", width: 80, number: true, value: (p) => (measured(p) && !isLost(p) ? number(p.metrics.cosine) : null), text: (p) => (measured(p) && !isLost(p) ? number(p.metrics.cosine).toFixed(5) : "") },
    { title: "why", width: 120, value: whyText, text: whyText },
    { title: "name A / B", width: 250, kind: "name", value: (p) => (p.a || p.b).name, pair: (p) => both(p, (s) => s.name) },
    { title: "paired by", width: 130, value: doubtText, text: doubtText },
    { title: "type", width: 84, value: (p) => both(p, (s) => s.dtype).join(), pair: (p) => both(p, (s) => s.dtype) },
    { title: "shape", width: 130, kind: "shape", value: (p) => (p.a || p.b).shape.reduce((x, y) => x * y, 1), pair: (p) => both(p, (s) => shapeText(s.shape)) },
    { title: "layout", width: 150, kind: "steps", value: (p) => (p.layout ? p.layout.steps.join("; ") : ""), text: (p) => (p.layout ? p.layout.steps.join("; ") : "") },
  ];

  const view = {
    hidden: new Set(), words: [], sort: 0, down: false, folded: new Set(), chosen: null,
    rows: [], tops: [0], body: element("tbody", {}), layered: pairs.some((p) => p.layer !== null), all: false,
  };

  const searchable = new Map();
  function searchText(p) {
    if (!searchable.has(p)) searchable.set(p, COLUMNS.map((c) => (c.pair ? c.pair(p).join(" ") : c.text(p))).concat(p.name, alsoText(p, "a"), alsoText(p, "b"), p.origin || "", p.layer === null ? "" : "layer " + p.layer).join("\n").toLowerCase());
    return searchable.get(p);
  }

  function compareBy(column, down) {
    const sign = down ? -1 : 1;
    return (p, q) => {
      const x = column.value(p), y = column.value(q);
      const gone = (v) => v === null || v === "";
      if (gone(x) || gone(y)) return gone(x) - gone(y) || p.index - q.index; // what has no value comes last, whichever way
      if (typeof x === "string") return sign * x.localeCompare(y, undefined, { numeric: true }) || p.index - q.index;
      const key = (v) => (Number.isNaN(v) ? Infinity : v);
      return key(x) === key(y) ? p.index - q.index : sign * (key(x) < key(y) ? -1 : 1);
    };
  }

  // Groups are runs of one layer in the order of execution; another order has none.
  function arrange() {
    const kept = pairs.filter((p) => !view.hidden.has(p.verdict) && view.words.every((w) => searchText(p).includes(w)));
    const grouped = view.layered && view.sort === 0 && !view.down;
    if (view.sort !== 0 || view.down) kept.sort(compareBy(COLUMNS[view.sort], view.down));
    view.rows = [];
    for (let from = 0, to; from < kept.length; from = to) {
      to = grouped ? from : kept.length;
      while (to < kept.length && kept[to].layer === kept[from].layer) to++;
      const group = kept.slice(from, to);
      if (grouped) view.rows.push({ layer: group[0].layer, key: group[0].layer + "@" + group[0].index, group });
      if (!grouped || !view.folded.has(view.rows[view.rows.length - 1].layer)) for (const p of group) view.rows.push({ pair: p });
    }
    view.tops = [0];
    for (const row of view.rows) view.tops.push(view.tops[view.tops.length - 1] + (row.pair ? HEIGHT.pair : HEIGHT.layer));
    byId("shown").textContent = kept.length === pairs.length ? pairs.length + (pairs.length === 1 ? " pair" : " pairs") : kept.length + " of " + pairs.length + " pairs";
    byId("fold").hidden = !grouped;
    byId("fold").textContent = view.folded.size ? "Expand layers" : "Collapse layers";
    render();
  }

  function layerRow(row) {
    const bad = row.group.filter((p) => p.verdict === "diverged"), folded = view.folded.has(row.layer);
    const largest = row.group.reduce((most, p) => (errorOf(p) > most ? errorOf(p) : most), 0);
    const button = element("button", { type: "button", "aria-expanded": String(!folded) }, row.layer === null ? "no layer" : "layer " + row.layer,
      element("span", {}, row.group.length + (row.group.length === 1 ? " pair" : " pairs") + (bad.length ? ", " + bad.length + " diverged" : "") + ", largest error " + short(largest)));
    button.addEventListener("click", () => {
      folded ? view.folded.delete(row.layer) : view.folded.add(row.layer);
      arrange();
      for (const other of view.body.querySelectorAll("button")) if (other.dataset.layer === String(row.layer)) other.focus();
    });
    button.dataset.layer = String(row.layer);
    return element("tr", { className: "layer" }, element("td", { colSpan: COLUMNS.length }, button));
  }

  function pairRow(p) {
    const tr = element("tr", { className: "pair " + p.verdict + (isFirst(p) ? " first" : "") + (p === view.chosen ? " chosen" : "") });
    for (const column of COLUMNS) {
      const td = element("td", { className: (column.number ? "number " : "") + (column.kind || "") });
      if (column.pair) {
        const [a, b] = column.pair(p), lines = a === b ? [a] : [a || "\u2013", b || "\u2013"];
        td.append(...lines.map((line) => element("span", { className: "two" }, line)));
        td.title = lines.join("\n");
      } else {
        if (column.kind === "verdict") td.append(mark(p.verdict));
        td.append(column.text(p));
        if (column.text(p).length > 10) td.title = column.title === "why" && p.diagnosis && p.diagnosis.length ? p.diagnosis[0].detail : column.text(p);
      }
      tr.append(td);
    }
    tr.addEventListener("click", () => choose(p, false));
    return tr;
  }

  function space(height) {
    const tr = element("tr", { className: "space", "aria-hidden": "true" }, element("td", { colSpan: COLUMNS.length }));
    tr.firstChild.style.height = height + "px";
    return tr;
  }

  function rowAt(y) {
    let low = 0, high = view.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      view.tops[middle + 1] <= y ? (low = middle + 1) : (high = middle);
    }
    return low;
  }

  // The box grows with its rows, up to the height of the window: that is what has to be filled.
  function render() {
    const box = byId("scroller"), total = view.tops[view.rows.length];
    const from = view.all ? 0 : rowAt(Math.max(box.scrollTop - OVERSCAN, 0));
    const to = view.all ? view.rows.length : Math.min(rowAt(box.scrollTop + Math.max(innerHeight, box.clientHeight) + OVERSCAN) + 1, view.rows.length);
    const rows = view.rows.slice(from, to).map((row) => (row.pair ? pairRow(row.pair) : layerRow(row)));
    if (view.tops[from] > 0) rows.unshift(space(view.tops[from]));
    if (total > view.tops[to]) rows.push(space(total - view.tops[to]));
    if (!view.rows.length) rows.push(element("tr", {}, element("td", { colSpan: COLUMNS.length, className: "dim" }, pairs.length ? "Nothing fits the filters." : "There are no pairs.")));
    const focused = document.activeElement && view.body.contains(document.activeElement) ? document.activeElement.dataset.layer : undefined;
    view.body.replaceChildren(...rows);
    view.from = from;
    view.to = to;
    if (focused !== undefined) for (const b of view.body.querySelectorAll("button")) if (b.dataset.layer === focused) b.focus({ preventScroll: true });
  }

  // Scrolling within what is drawn needs no new rows.
  function onScroll() {
    const box = byId("scroller"), first = rowAt(box.scrollTop), last = rowAt(box.scrollTop + box.clientHeight);
    if (first < view.from + 2 && view.from > 0 || last > view.to - 2 && view.to < view.rows.length) render();
  }

  function reveal(p) {
    if (view.folded.delete(p.layer)) arrange();
    let i = view.rows.findIndex((row) => row.pair === p);
    if (i < 0) {
      view.hidden.clear();
      view.words = [];
      byId("search").value = "";
      for (const chip of byId("chips").children) chip.setAttribute("aria-pressed", "true");
      arrange();
      i = view.rows.findIndex((row) => row.pair === p);
    }
    return i;
  }

  function choose(p, travel) {
    const i = reveal(p), box = byId("scroller"), head = 30;
    view.chosen = p;
    showDetail(p);
    if (travel) {
      byId("pairs").scrollIntoView({ block: "start" });
      box.scrollTop = view.tops[i] - box.clientHeight / 2 + head;
      box.focus({ preventScroll: true });
    } else {
      const top = view.tops[i], bottom = view.tops[i + 1] + head;
      if (top < box.scrollTop) box.scrollTop = top;
      if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    }
    render();
  }

  function tableKey(event) {
    if (event.target !== byId("scroller")) return;
    const list = view.rows.filter((row) => row.pair).map((row) => row.pair), at = list.indexOf(view.chosen), last = list.length - 1;
    const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    choose(list[to], false);
  }

  function headerCell(column, i) {
    const button = element("button", { type: "button", title: "Sort by " + column.title }, column.title);
    const th = element("th", { scope: "col", className: column.number ? "number" : "" }, button);
    button.addEventListener("click", () => {
      // Errors are looked at from the largest, names from the first.
      if (view.sort === i) view.down = !view.down;
      else [view.sort, view.down] = [i, Boolean(column.number) && i > 1 && column.title !== "cosine"];
      showSort();
      arrange();
    });
    return th;
  }

  function showSort() {
    byId("table").querySelectorAll("th").forEach((th, i) => {
      const on = i === view.sort;
      on ? th.setAttribute("aria-sort", view.down ? "descending" : "ascending") : th.removeAttribute("aria-sort");
      th.firstChild.textContent = COLUMNS[i].title + (on ? (view.down ? " \u2193" : " \u2191") : "");
    });
  }

  function showChips() {
    for (const verdict of Object.keys(VERDICTS)) {
      const count = pairs.filter((p) => p.verdict === verdict).length;
      if (!count) continue;
      const chip = element("button", { type: "button", "aria-pressed": "true" }, mark(verdict), VERDICTS[verdict] + " " + count);
      chip.addEventListener("click", () => {
        view.hidden.delete(verdict) || view.hidden.add(verdict);
        chip.setAttribute("aria-pressed", String(!view.hidden.has(verdict)));
        arrange();
      });
      byId("chips").append(chip);
    }
  }

  function showTable() {
    const columns = element("colgroup", {}, ...COLUMNS.map((c) => {
      const col = element("col", {});
      col.style.width = c.width + "px";
      return col;
    }));
    byId("table").style.width = "max(100%, " + COLUMNS.reduce((sum, c) => sum + c.width, 0) + "px)";
    byId("table").append(columns, element("thead", {}, element("tr", {}, ...COLUMNS.map(headerCell))), view.body);
    showChips();
    showSort();
    byId("search").addEventListener("input", (event) => {
      view.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      arrange();
    });
    byId("fold").addEventListener("click", () => {
      view.folded = view.folded.size ? new Set() : new Set(pairs.map((p) => p.layer));
      arrange();
    });
    byId("scroller").addEventListener("scroll", onScroll, { passive: true });
    byId("scroller").addEventListener("keydown", tableKey);
    window.addEventListener("beforeprint", () => { view.all = true; render(); });
    window.addEventListener("afterprint", () => { view.all = false; render(); });
    window.addEventListener("resize", render);
    arrange();
  }

  function showSkipped() {
    if (!diff.skipped.length) return;
    for (const s of diff.skipped) byId("skipped-list").append(element("li", {}, element("span", { className: "mono" }, s.name), ": " + s.reason));
    byId("skipped").hidden = false;
  }

  showChart();
  showFirst();
  showTable();
  showSkipped();

  // report.html#pair-17 opens with that pair.
  const wanted = /^#pair-(\d+)$/.exec(location.hash);
  if (wanted && pairs[wanted[1]]) choose(pairs[wanted[1]], true);
})();
