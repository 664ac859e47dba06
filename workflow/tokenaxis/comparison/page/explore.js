"use strict";
// Interactive charts in place of the static ones, which stay for print and for readers without scripts.
(function () {
  const source = document.getElementById("data");
  if (!source || typeof Plotly === "undefined") return;
  const data = JSON.parse(source.textContent);
  if (!data.runs.length || !data.view) return;
  const state = { x: "tokens", xlog: true, ylog: false, raw: data.runs.length <= 12, filter: "" };
  const many = data.runs.length > 40; // beyond that the grey runs are one trace: hundreds of traces take seconds
  for (const run of data.runs) { // windows name their target: from here on its place in the list
    for (const entry of run.windows) entry[0] = data.targets.indexOf(entry[0]);
    run.windows = run.windows.filter((entry) => entry[0] >= 0);
  }
  data.runs.sort((a, b) => (a.colour >= 0) - (b.colour >= 0)); // coloured runs are drawn last, above the grey ones
  const charts = [];

  // --- words and colours ---
  function plain(text) { // plotly reads a little markup: names are text
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }
  function short(value) {
    if (value === null || !isFinite(value)) return "—";
    for (const [size, letter] of [[1e15, "Q"], [1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]]) {
      if (value >= size * 0.9995) return (value / size).toPrecision(3) + letter;
    }
    return String(+value.toPrecision(3));
  }
  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
  function colour(run) { return run.colour < 0 ? css("others") : css("series-" + run.colour); }
  function rank(run) { return run.colour < 0 ? 1001 : 1; } // coloured runs first in the legend
  function faded(hex, opacity) {
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${opacity})`;
  }
  function shownRuns() {
    const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    return data.runs.filter((run) => words.every((word) => run.name.toLowerCase().includes(word)));
  }

  // --- the x axis: everything is a piecewise linear function of tokens ---
  function interpolate(knots, tokens) {
    const [xs, ys] = knots;
    const last = xs.length - 1;
    if (last < 1) return null;
    let low = 0, high = last;
    while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] <= tokens) low = middle; else high = middle; }
    if (xs[high] === xs[low]) return ys[low];
    return ys[low] + (tokens - xs[low]) * (ys[high] - ys[low]) / (xs[high] - xs[low]);
  }
  function mapping(run) {
    if (state.x === "tokens") return (tokens) => tokens;
    if (state.x === "steps") return run.steps && ((tokens) => interpolate(run.steps, tokens));
    if (state.x === "hours") return run.hours && ((tokens) => interpolate(run.hours, tokens));
    const each = run.flops[data.conventions.indexOf(state.x.slice(6))];
    return each ? (tokens) => tokens * each : null;
  }
  function axisChoices() {
    const found = [["tokens", "tokens"], ["steps", "optimizer steps"]];
    if (data.runs.some((run) => run.hours)) found.push(["hours", "wall time (hours)"]);
    data.conventions.forEach((name, at) => {
      if (data.runs.some((run) => run.flops[at])) found.push(["flops:" + name, "FLOP (" + name + ")"]);
    });
    return found;
  }
  function axisUnit() { return state.x.startsWith("flops:") ? "FLOP" : state.x; }

  // --- layout that all charts share ---
  function layout(xaxis, yaxis, more) {
    const line = { gridcolor: css("grid"), linecolor: css("muted"), zeroline: false, exponentformat: "B", automargin: true };
    return Object.assign({
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", dragmode: "zoom",
      font: { family: css("font"), size: innerWidth < 640 ? 11 : 13, color: css("ink") },
      margin: { l: 64, r: 16, t: 34, b: 52 }, xaxis: Object.assign({}, line, xaxis), yaxis: Object.assign({}, line, yaxis),
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("muted"), activecolor: css("ink") },
      hoverlabel: { bgcolor: css("raised"), bordercolor: css("muted"), font: { color: css("ink") }, namelength: -1 },
      legend: innerWidth < 640 ? { orientation: "h", y: -0.25, yanchor: "top" } : { font: { size: 12 }, itemsizing: "constant" },
    }, more);
  }
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"],
                   toImageButtonOptions: { format: "svg", filename: "tokenaxis" } };
  // Round ticks such as 2M, 5M on a logarithmic axis (plotly writes bare digits between decades), anew after each zoom.
  function logTicks(low, high) {
    const sets = [[1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9], [1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 3, 5], [1, 3], [1]];
    let ticks = [];
    for (const set of sets) {
      ticks = [];
      for (let power = Math.floor(low); power <= Math.ceil(high); power++) {
        for (const step of set) {
          const value = Math.log10(step) + power;
          if (value >= low - 1e-9 && value <= high + 1e-9) ticks.push(+(step * 10 ** power).toPrecision(3));
        }
      }
      if (ticks.length <= 9) break;
    }
    return ticks;
  }
  function tickText(value, flop) {
    if (flop || value >= 1e18 || value < 0.01) return value.toExponential().replace("+", "");
    const text = short(value);
    return text.includes(".") ? text.replace(/\.?0+(?=[A-Z]?$)/, "") : text;
  }
  function retick(place) {
    const change = {};
    for (const name of ["xaxis", "yaxis"]) {
      const axis = place._fullLayout[name];
      if (axis.type !== "log") continue;
      const ticks = logTicks(Math.min(...axis.range), Math.max(...axis.range));
      if (ticks.length < 2 || String(ticks) === String(axis.tickvals || "")) continue;
      change[name + ".tickvals"] = ticks;
      change[name + ".ticktext"] = ticks.map((value) => tickText(value, name === "xaxis" && place.dataset.unit === "FLOP"));
    }
    if (Object.keys(change).length) Plotly.relayout(place, change);
  }
  function draw(place, traces, shape) {
    Plotly.react(place, traces, shape, config).then(() => {
      place.dataset.drawn = "1";
      if (!place.dataset.ticks) { place.dataset.ticks = "1"; place.on("plotly_relayout", () => retick(place)); }
      retick(place);
    });
  }
  function ends(values, log) { return log ? values.map((value) => Math.log10(value)) : values; }

  // --- many runs: the grey ones are one trace, with gaps between runs; the search box still picks single ones ---
  function others() { return many ? shownRuns().filter((run) => run.colour < 0) : []; }
  function single() { return many ? shownRuns().filter((run) => run.colour >= 0) : shownRuns(); }
  function othersName(count) { return count === 1 ? "1 other run" : `${count} other runs`; }
  function merged(runs, points) { // points(run) -> [x, y] or null
    const x = [], y = [], text = [];
    for (const run of runs) {
      const found = points(run);
      if (!found) continue;
      const name = plain(run.name);
      for (let at = 0; at < found[0].length; at++) { x.push(found[0][at]); y.push(found[1][at]); text.push(name); }
      x.push(null); y.push(null); text.push("");
    }
    return { x, y, text, name: othersName(runs.length), legendgroup: "others", legendrank: 1001, type: "scatter", mode: "lines", opacity: 0.6,
             line: { width: 1, color: css("others") } };
  }

  // --- loss against tokens, steps, hours or FLOP ---
  function lossChart(place) {
    const traces = [], unit = axisUnit();
    let low = Infinity, high = -Infinity;
    const span = (run, map) => {
      for (const tokens of data.view.tokens) {
        const x = map(tokens);
        if (x > 0) { low = Math.min(low, x); high = Math.max(high, x); }
      }
    };
    const rest = others().map((run) => [run, mapping(run)]).filter((pair) => pair[1]);
    if (rest.length) {
      rest.forEach(([run, map]) => span(run, map));
      const maps = new Map(rest), runs = rest.map((pair) => pair[0]);
      const hover = `%{text}<br>%{x:,.4~g} ${unit}<br>%{y:.4f} nats/token`;
      if (state.raw) {
        traces.push({ ...merged(runs, (run) => run.raw && [run.raw[0].map(maps.get(run)), run.raw[1]]), showlegend: false, opacity: 0.3,
                      hovertemplate: hover + " as logged<extra></extra>" });
      }
      traces.push({ ...merged(runs, (run) => [run.smooth[0].map(maps.get(run)), run.smooth[1]]), hovertemplate: hover + " (smoothed)<extra></extra>" });
      const marks = runs.map((run) => crossings(run, maps.get(run), {}, unit));
      traces.push({ type: "scatter", mode: "markers", showlegend: false, legendgroup: "others", hoverinfo: "text",
                    x: marks.flatMap((mark) => mark.x), y: marks.flatMap((mark) => mark.y), hovertext: marks.flatMap((mark) => mark.hovertext),
                    marker: { size: 5, color: css("others"), symbol: marks.flatMap((mark) => mark.marker.symbol) } });
    }
    for (const run of single()) {
      const map = mapping(run);
      if (!map) continue;
      span(run, map);
      const name = plain(run.name), group = { legendgroup: run.name, name, legendrank: rank(run) };
      const hover = `${name}<br>%{x:,.4~g} ${unit}<br>%{y:.4f} nats/token`;
      if (state.raw) {
        traces.push({ ...group, type: "scatter", mode: run.raw[0].length < 200 ? "markers" : "lines", showlegend: false,
                      x: run.raw[0].map(map), y: run.raw[1], line: { width: 1, color: faded(colour(run), 0.3) },
                      marker: { size: 3, color: faded(colour(run), 0.45) }, hovertemplate: hover + " as logged<extra></extra>" });
      }
      traces.push({ ...group, type: "scatter", mode: "lines", x: run.smooth[0].map(map), y: run.smooth[1],
                    line: { width: run.colour < 0 ? 1 : 2, color: colour(run) },
                    hovertemplate: hover + ` (${run.loss}, smoothed)<extra></extra>` });
      if (run.cells.length) traces.push(crossings(run, map, group, unit));
    }
    const lines = data.targets.map((target) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: target, y1: target,
                                                   layer: "below", line: { color: css("muted"), width: 1, dash: "dot" } }));
    const labels = data.targets.map((target, at) => ({ xref: "paper", x: 0, xanchor: "left", y: state.ylog ? Math.log10(target) : target,
      yanchor: "bottom", text: data.targetNames[at], showarrow: false, font: { size: 11, color: css("muted") } }));
    const title = axisChoices().find((choice) => choice[0] === state.x)[1];
    place.dataset.unit = unit;
    draw(place, traces, layout(
      { title: { text: title }, type: state.xlog ? "log" : "linear", range: low < high ? ends([low, high], state.xlog) : undefined,
        exponentformat: unit === "FLOP" ? "power" : "B" },
      { title: { text: "loss (nats per token)" }, type: state.ylog ? "log" : "linear", range: ends(data.view.loss, state.ylog) },
      { shapes: lines, annotations: labels.length <= 24 ? labels : [] }));
  }
  function crossings(run, map, group, unit) {
    const cells = run.cells.filter((cell) => cell[2] <= data.view.tokens[1]); // the table has the far ones
    const x = cells.map((cell) => map(cell[2]));
    const above = cells.map((cell, at) => (cell[3] === null ? 0 : (cell[4] === null ? 9 * x[at] : map(cell[4]) - x[at])));
    const below = cells.map((cell, at) => (cell[3] === null ? 0 : x[at] - map(cell[3])));
    return { ...group, type: "scatter", mode: "markers", showlegend: false, x, y: cells.map((cell) => data.targets[cell[0]]),
      marker: { size: run.colour < 0 ? 5 : 8, color: colour(run), symbol: cells.map((cell) => (cell[1] ? "circle" : "circle-open")), line: { width: 2, color: colour(run) } },
      error_x: { type: "data", symmetric: false, array: above, arrayminus: below, thickness: 5, width: 0, visible: !many || run.colour >= 0, color: faded(colour(run), 0.35) },
      hovertext: cells.map((cell, at) => `${plain(run.name)} ${cell[1] ? "reaches" : "is predicted to reach"} ${data.targetNames[cell[0]]} nats/token<br>after ` +
        `${short(cell[2])} tokens` + (cell[3] === null ? "" : ` [${short(cell[3])}, ${cell[4] === null ? "unbounded)" : short(cell[4]) + "]"}`) +
        (unit === "tokens" ? "" : `<br>= ${short(x[at])} ${unit}`)),
      hoverinfo: "text" };
  }

  // --- stability: one target over all runs, or one run over all targets ---
  let stabilityView = "target:" + Math.max(0, data.targets.indexOf(data.focus));
  function stabilityChart(place) {
    const [kind, index] = [stabilityView.slice(0, stabilityView.indexOf(":")), +stabilityView.slice(stabilityView.indexOf(":") + 1)];
    const traces = [], seen = [];
    const rest = kind === "run" ? [] : others().filter((run) => run.windows.some((entry) => entry[0] === index));
    if (rest.length) {
      const own = (run) => run.windows.find((entry) => entry[0] === index);
      rest.forEach((run) => own(run)[1].forEach((tokens) => seen.push(tokens)));
      traces.push({ ...merged(rest, (run) => [own(run)[1], own(run)[2]]),
                    hovertemplate: "%{text}: with %{x:,.3s} tokens seen<br>%{y:,.3s} tokens<extra></extra>" });
    }
    const runs = kind === "run" ? [data.runs[index]] : single();
    for (const run of runs) {
      for (const [target, tokens, predicted, low, high] of run.windows) {
        if (kind === "target" && target !== index) continue;
        const shade = kind === "run" ? css("series-" + (target % 10)) : colour(run);
        const name = kind === "run" ? data.targetNames[target] + " nats/token" : plain(run.name);
        for (const place of tokens) seen.push(place);
        if (kind === "run") {
          const rows = tokens.map((_, at) => at).filter((at) => low[at] !== null && high[at] !== null && predicted[at] !== null);
          traces.push({ x: rows.map((at) => tokens[at]).concat(rows.map((at) => tokens[at]).reverse()),
                        y: rows.map((at) => high[at]).concat(rows.map((at) => low[at]).reverse()), fill: "toself", mode: "lines",
                        line: { width: 0 }, fillcolor: faded(shade, 0.15), hoverinfo: "skip", showlegend: false, legendgroup: name });
        }
        const cell = run.cells.find((candidate) => candidate[0] === target);
        if (cell) {
          traces.push({ x: [cell[1] ? cell[2] : tokens[tokens.length - 1]], y: [cell[2]], mode: "markers", name, legendgroup: name, showlegend: false, hoverinfo: "skip",
                        marker: { size: 9, color: shade, symbol: cell[1] ? "circle" : "circle-open", line: { width: 2, color: shade } } });
        }
        traces.push({ x: tokens, y: predicted, mode: "lines", name, legendgroup: name, legendrank: kind === "run" ? 1 : rank(run),
                      line: { width: kind === "target" && run.colour < 0 ? 1 : 2, color: shade },
                      hovertext: tokens.map((seenTokens, at) => `${name}: with ${short(seenTokens)} tokens seen<br>${short(predicted[at])} tokens` +
                        (low[at] === null ? "" : ` [${short(low[at])}, ${high[at] === null ? "unbounded)" : short(high[at]) + "]"}`)), hoverinfo: "text" });
      }
    }
    const span = seen.length ? [seen.reduce((a, b) => Math.min(a, b)), seen.reduce((a, b) => Math.max(a, b))] : [1, 10];
    traces.push({ x: span, y: span, mode: "lines", name: "predicted = observed", line: { color: css("muted"), dash: "dot", width: 1 }, hoverinfo: "skip" });
    draw(place, traces, layout({ title: { text: "tokens observed" }, type: "log" },
      { title: { text: "predicted tokens to the target" }, type: "log" }, {}));
  }

  // --- learning rate and batch size ---
  function tracksChart(place) {
    const traces = [];
    const rest = others();
    if (rest.length) {
      traces.push({ ...merged(rest, (run) => run.batch), line: { width: 1, color: css("others"), shape: "hv" },
                    hovertemplate: "%{text}<br>%{x:,.0f} tokens<br>%{y:,.0f} tokens/step<extra></extra>" });
      traces.push({ ...merged(rest, (run) => run.lr), yaxis: "y2", showlegend: false,
                    hovertemplate: "%{text}<br>%{x:,.0f} tokens<br>learning rate %{y:.3~g}<extra></extra>" });
    }
    for (const run of single()) {
      const name = plain(run.name), group = { legendgroup: run.name, name, legendrank: rank(run), line: { color: colour(run), width: run.colour < 0 ? 1 : 2 } };
      if (run.batch) traces.push({ ...group, x: run.batch[0], y: run.batch[1], mode: "lines", line: { ...group.line, shape: "hv" },
                                   hovertemplate: `${name}<br>%{x:,.0f} tokens<br>%{y:,.0f} tokens/step<extra></extra>` });
      if (run.lr) traces.push({ ...group, x: run.lr[0], y: run.lr[1], mode: "lines", yaxis: "y2", showlegend: !run.batch,
                                hovertemplate: `${name}<br>%{x:,.0f} tokens<br>learning rate %{y:.3~g}<extra></extra>` });
      if (run.attempts.length) traces.push({ ...group, mode: "markers", showlegend: false, x: run.attempts,
        y: run.attempts.map((tokens) => run.batch ? run.batch[1][run.batch[0].filter((start) => start <= tokens).length - 1] : 0),
        marker: { symbol: "x", size: 9, color: colour(run) }, hovertemplate: `${name} resumed at %{x:,.0f} tokens<extra></extra>` });
    }
    const second = { gridcolor: css("grid"), linecolor: css("muted"), zeroline: false, automargin: true, domain: [0, 0.46], rangemode: "tozero",
                     title: { text: "learning rate" }, exponentformat: "power" };
    draw(place, traces, layout({ title: { text: "tokens consumed" }, anchor: "y2", rangemode: "tozero" },
      { title: { text: innerWidth < 640 ? "tokens/step" : "batch (tokens per step)" }, domain: [0.54, 1], rangemode: "tozero" }, { yaxis2: second }));
  }

  // --- controls ---
  function control(place, label, element, change) {
    const box = document.createElement("label");
    element.addEventListener(element.type === "search" ? "input" : "change", () => { change(element); redraw(); });
    box.append(...(element.type === "checkbox" ? [element, " " + label] : [label + " ", element]));
    place.append(box);
    return element;
  }
  function select(choices, value) {
    const element = document.createElement("select");
    for (const [key, text] of choices) element.add(new Option(text, key, false, key === value));
    return element;
  }
  function box(checked) {
    const element = document.createElement("input");
    element.type = "checkbox"; element.checked = checked;
    return element;
  }
  function lossControls(place) {
    control(place, "x axis", select(axisChoices(), state.x), (element) => { state.x = element.value; });
    control(place, "log x", box(state.xlog), (element) => { state.xlog = element.checked; });
    control(place, "log y", box(state.ylog), (element) => { state.ylog = element.checked; });
    control(place, "as logged", box(state.raw), (element) => { state.raw = element.checked; });
    const search = document.createElement("input");
    search.type = "search"; search.placeholder = "part of a name";
    control(place, "show runs with", search, (element) => { state.filter = element.value; filterTables(); });
  }
  function stabilityControls(place) {
    const choices = data.targets.map((_, at) => ["target:" + at, data.targetNames[at] + " nats/token, all runs"]);
    data.runs.forEach((run, at) => { if (run.windows.length) choices.push(["run:" + at, run.name + ", all targets"]); });
    control(place, "show", select(choices, stabilityView), (element) => { stabilityView = element.value; });
  }
  function filterTables() {
    const names = new Set(shownRuns().map((run) => run.name));
    for (const element of document.querySelectorAll("[data-run]")) element.hidden = !names.has(element.dataset.run);
  }

  // --- when to draw ---
  function redraw() { for (const chart of charts) if (chart.drawn) chart.draw(chart.place); }
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const chart = charts.find((candidate) => candidate.place === entry.target);
      if (entry.isIntersecting && !chart.drawn) { chart.drawn = true; chart.draw(chart.place); }
    }
  }, { rootMargin: "400px" });
  const kinds = { loss: [lossChart, lossControls], stability: [stabilityChart, stabilityControls], tracks: [tracksChart, null] };
  for (const [name, [draw, controls]] of Object.entries(kinds)) {
    const figure = document.getElementById("figure-" + name);
    if (!figure) continue;
    figure.classList.add("is-live");
    const bar = document.createElement("div"), place = document.createElement("div");
    bar.className = "controls";
    place.className = "chart";
    place.setAttribute("role", "img");
    place.setAttribute("aria-labelledby", "figure-" + name + "-alt");
    figure.querySelector(".static").before(bar, place);
    if (controls) controls(bar);
    charts.push({ place, draw, drawn: false });
    observer.observe(place);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.documentElement.dataset.charts = "ready";
})();
