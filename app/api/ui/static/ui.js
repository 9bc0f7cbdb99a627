// What pages do besides being read: the theme, tables that sort, parts that are loaded behind the rest, the simulator.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const stored = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                   set: (theme) => { try { localStorage.setItem("theme", theme); } catch { /* it lasts for this page */ } } };
  // Before anything is painted.
  if (["light", "dark"].includes(stored.get())) root.dataset.theme = stored.get();

  function themeButton(button) {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
    const other = () => (current() === "dark" ? "light" : "dark");
    const put = () => {
      button.textContent = other() === "dark" ? "Dark" : "Light";
      button.setAttribute("aria-label", `${button.textContent} theme`);
    };
    button.hidden = false;
    button.addEventListener("click", () => { root.dataset.theme = other(); stored.set(root.dataset.theme); put(); });
    dark.addEventListener("change", put);
    put();
  }

  // Values that do not exist come last in both directions.
  const number = (text) => parseFloat(text.replace("−", "-").replace(/[,<>]/g, ""));
  function compared(a, b, numeric, rising) {
    if (!numeric) return rising ? a.localeCompare(b) : b.localeCompare(a);
    const [x, y] = [number(a), number(b)];
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return rising ? x - y : y - x;
  }

  // Tables of one name are one list: the rows of all are sorted together.
  function sortable(table) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.dataset.k) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const peers = [...document.querySelectorAll(`table[data-sort="${table.dataset.sort}"]`)];
        const rising = head.getAttribute("aria-sort") !== "ascending";
        const text = (row) => row.cells[column].textContent.trim();
        const rows = peers.flatMap((peer) => [...peer.tBodies[0].rows]);
        rows.sort((a, b) => compared(text(a), text(b), head.dataset.k === "n", rising));
        const lengths = peers.map((peer) => peer.tBodies[0].rows.length);
        for (const [index, peer] of peers.entries()) {
          peer.tBodies[0].append(...rows.splice(0, lengths[index]));
          [...peer.tHead.rows[0].cells].forEach((one, place) => {
            if (place === column) one.setAttribute("aria-sort", rising ? "ascending" : "descending");
            else one.removeAttribute("aria-sort");
          });
        }
      });
    });
  }

  // A part is a page of its own, which is read by itself where there is no script.
  async function load(section, address) {
    section.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const part = page.getElementById("part");
      if (!part) return;
      section.replaceChildren(...part.childNodes);
      section.querySelectorAll("table[data-sort]").forEach(sortable);
      const form = section.querySelector("form");
      if (form) form.addEventListener("submit", (event) => {
        event.preventDefault();
        load(section, `${section.dataset.part}?${new URLSearchParams(new FormData(form))}`);
      });
      if (part.dataset.simulator) { section.dataset.simulator = part.dataset.simulator; section.classList.add("simulator"); simulator(section); }
    } catch (error) {
      // The link to the part stays in its place.
      console.error(error);
    } finally {
      section.removeAttribute("aria-busy");
    }
  }

  // One after the other, whether they are looked at or not: a page that is printed or photographed has no blank places.
  async function parts() {
    addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
    for (const section of document.querySelectorAll("[data-part]")) await load(section, section.dataset.part);
  }

  // --- the simulator: arithmetic of the rates that the page has inside, as the service does it --------------------
  const percent = (part) => `${+(100 * part).toPrecision(3)}\u00a0%`;
  const many = (part) => {
    const number = 1000 * part;
    if (number === 0) return "0";
    if (number < 0.005) return "<0.01";
    return number >= 100 ? Math.round(number).toLocaleString("en") : number.toFixed(number >= 1 ? 1 : 2);
  };
  const hundred = (part) => {
    const number = Math.round(100 * part);
    return `${number === 0 && part > 0 ? "fewer than 1" : number === 100 && part < 1 ? "more than 99" : number} of 100`;
  };
  const signed = (number) => `${number}`.replace(/^-/, "−");
  const known = (...ends) => ends.every((end) => end !== null);
  // With as many decimals as the interval needs, and as tell a number from 0 and 1, five at most; these have none.
  const limited = (value, low, high) => {
    if (value === null) return ["–", ""];
    const limits = known(low, high);
    const whole = (number) => Math.abs(number - Math.round(number)) < 1e-12;
    const apart = (number, digits) => whole(number) || digits >= 5 || ![0, 1].includes(+number.toFixed(digits)) ? digits : apart(number, digits + 1);
    const least = limits ? (high - low >= 0.1 ? 2 : high - low >= 0.002 ? 3 : 4) : 3;
    const digits = Math.max(...(limits ? [value, low, high] : [value]).map((number) => apart(number, least)));
    const put = (number) => {
      if (whole(number)) return Math.round(number);
      return { 0: "<0.00001", 1: ">0.99999" }[+number.toFixed(digits)] ?? number.toFixed(digits);
    };
    return [`${put(value)}`, limits ? `${put(low)} to ${put(high)}` : ""];
  };

  // Limits of a ratio from those of both parts: MOVER-R.
  function ratioEnd(b, a, top, bottom, sign) {
    const scale = bottom * (2 * a - bottom);
    if (scale <= 0) return bottom === 0 ? Infinity : top / bottom;
    return (a * b + sign * Math.sqrt(Math.max((a * b) ** 2 - top * (2 * b - top) * scale, 0))) / scale;
  }

  function outcome(rates, place, share, costFp, costFn) {
    const [recall, alarms] = [rates.recall[place], rates.alarms[place]];
    const [caught, wrong] = [share * recall[0], (1 - share) * alarms[0]];
    const cost = (share - caught) * costFn + wrong * costFp;
    let ends = [null, null];
    if (known(...recall, ...alarms)) {
      const [misses, errors] = [share * costFn, (1 - share) * costFp];
      ends = [Math.max(0, cost - Math.hypot(misses * (recall[2] - recall[0]), errors * (alarms[0] - alarms[1]))),
              cost + Math.hypot(misses * (recall[0] - recall[1]), errors * (alarms[2] - alarms[0]))];
    }
    const [hits, false_] = [rates.exactRecall[place], rates.exactAlarms[place]];
    let precision = [caught + wrong ? caught / (caught + wrong) : null, null, null];
    if (known(precision[0], ...hits, ...false_)) {
      const [a, b, r] = [hits.map((end) => share * end), false_.map((end) => (1 - share) * end), 1];
      precision = [precision[0], r / (1 + ratioEnd(wrong, caught, b[1], a[0], 1)), r / (1 + ratioEnd(wrong, caught, b[0], a[1], -1))];
    }
    return { caught, wrong, missed: share - caught, precision, cost: [cost, ...ends] };
  }

  function drawing(svg, words) {
    const [parts, make] = [[], (tag, given, text) => {
      const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
      Object.entries(given).forEach(([name, value]) => one.setAttribute(name, value));
      if (text) one.textContent = text;
      parts.push(one);
    }];
    const line = (style, points) => make("polyline", { class: style, points: points.map((one) => one.join()).join(" ") });
    const band = (low, high) => make("polygon", { class: "bando", points: [...low, ...high.reverse()].map((one) => one.join()).join(" ") });
    return { make, line, band, done: () => { svg.replaceChildren(...parts); svg.setAttribute("aria-label", words()); } };
  }

  // The next number of one digit that is easily halved.
  const rounded = (value) => {
    const unit = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 6, 8, 10].find((one) => one * unit >= value) * unit;
  };

  const [LEFT, RIGHT, TOP, BOTTOM] = [44, 400, 22, 205];

  function frame(draw, ticks, heights, name) {
    heights.forEach(([y, words]) => {
      draw.make("line", { class: "gr", x1: LEFT, x2: RIGHT, y1: y, y2: y });
      draw.make("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, words);
    });
    ticks.forEach(([x, words]) => draw.make("text", { x, y: BOTTOM + 18, "text-anchor": "middle" }, words));
    draw.make("text", { x: (LEFT + RIGHT) / 2, y: BOTTOM + 38, "text-anchor": "middle" }, name);
  }

  function simulator(section) {
    const rates = JSON.parse(section.dataset.simulator);
    const form = section.querySelector("form");
    const number = (name) => (form.elements[name] ? parseFloat(form.elements[name].value) : NaN);
    const nearest = (threshold) => {
      if (!rates.t || isNaN(threshold)) return 0;
      return rates.t.reduce((best, one, place) => (Math.abs(one - threshold) < Math.abs(rates.t[best] - threshold) ? place : best), 0);
    };
    const fact = (key, value, more) => {
      const [strong, span] = section.querySelectorAll(`[data-fact=${key}] b, [data-fact=${key}] span`);
      [strong.textContent, span.textContent] = [value, more];
    };
    const shares = [...Array(81)].map((_, step) => 1e-4 * 5000 ** (step / 80));
    const across = (share) => LEFT + (RIGHT - LEFT) * Math.log(share / 1e-4) / Math.log(5000);
    const up = (part) => BOTTOM - (BOTTOM - TOP) * part;

    function drawShares(place, share, now) {
      const figure = section.querySelector("[data-chart=shares]");
      const draw = drawing(figure.querySelector("svg"), () => `Precision over the share of the class: ${limited(...now.precision)[0]} at ${percent(share)}; recall is ${limited(...rates.recall[place])[0]} at every share.`);
      frame(draw, [1e-4, 1e-3, 0.01, 0.1, 0.5].map((one) => [across(one), percent(one)]), [0, 0.5, 1].map((one) => [up(one), one]), "share of the class, log scale");
      const [value, low, high] = rates.recall[place];
      if (known(low)) draw.make("rect", { class: "band", x: LEFT, width: RIGHT - LEFT, y: up(high), height: up(low) - up(high) });
      draw.line("cl", [[LEFT, up(value)], [RIGHT, up(value)]]);
      const found = shares.map((one) => [across(one), ...outcome(rates, place, one, 1, 1).precision]).filter((one) => known(one[1]));
      if (found.length) {
        if (known(found[0][2])) draw.band(found.map(([x, , end]) => [x, up(end)]), found.map(([x, , , end]) => [x, up(end)]));
        draw.line("co", found.map(([x, middle]) => [x, up(middle)]));
        const ends = [[up(found.at(-1)[1]), "k", "Precision"], [up(value), "ka", "Recall"]].sort((a, b) => b[0] - a[0]);
        // The upper name makes room for the lower one, below which are the ticks.
        ends[1][0] = Math.min(ends[1][0], ends[0][0] - 16);
        ends.forEach(([y, style, words]) => draw.make("text", { class: style, x: RIGHT + 6, y: y + 4 }, words));
      }
      const inside = rates.observed >= 1e-4 && rates.observed <= 0.5;
      if (inside) draw.make("line", { class: "ref", x1: across(rates.observed), x2: across(rates.observed), y1: TOP, y2: BOTTOM });
      draw.make("line", { class: "co", x1: across(share), x2: across(share), y1: TOP - 6, y2: BOTTOM });
      draw.make("text", { class: "k", x: across(share), y: TOP - 10, "text-anchor": share > 0.1 ? "end" : "start" }, percent(share));
      draw.make("circle", { class: "d", cx: across(share), cy: up(value), r: 4.5 });
      if (known(now.precision[0])) draw.make("circle", { class: "o", cx: across(share), cy: up(now.precision[0]), r: 4.5 });
      const read = [rates.t && "at the threshold chosen", known(low) && "bands: 95\u00a0% limits", inside && "dashed: this data"];
      figure.querySelector("span").textContent = read.filter(Boolean).join("; ");
      draw.done();
    }

    function drawCosts(place, share, costFp, costFn) {
      const figure = section.querySelector("[data-chart=costs]");
      if (!figure) return;
      const costs = rates.t.map((_, each) => outcome(rates, each, share, costFp, costFn).cost);
      const least = Math.min(...costs.map((one) => one[0]));
      const best = costs.findIndex((one) => one[0] <= least * (1 + 1e-5));
      // Where nearly everything is an alert the line leaves the frame.
      const most = rounded(Math.max(...costs.slice(Math.floor(costs.length / 20)).map((one) => one[0])) || 1);
      const [first, last] = [rates.t[0], rates.t.at(-1)];
      const x = (each) => LEFT + (RIGHT - LEFT) * (last > first ? (rates.t[each] - first) / (last - first) : 0.5);
      const y = (cost) => up(Math.min(1.05, cost / most));
      const at = (each) => signed(+rates.t[each].toPrecision(2));
      const draw = drawing(figure.querySelector("svg"), () => `Expected cost over the threshold: ${many(costs[place][0])} at ${at(place)}, the least ${many(costs[best][0])} at ${at(best)}.`);
      frame(draw, [0, Math.floor(costs.length / 2), costs.length - 1].map((each) => [x(each), at(each)]), [0, 0.5, 1].map((one) => [up(one), (+(1000 * one * most).toPrecision(2)).toLocaleString("en", { maximumSignificantDigits: 2 })]), "threshold");
      if (known(costs[0][1])) draw.band(costs.map((one, each) => [x(each), y(one[1])]), costs.map((one, each) => [x(each), y(one[2])]));
      draw.line("co", costs.map((one, each) => [x(each), y(one[0])]));
      draw.make("line", { class: "ref", x1: x(best), x2: x(best), y1: TOP, y2: BOTTOM });
      draw.make("line", { class: "co", x1: x(place), x2: x(place), y1: TOP - 6, y2: BOTTOM });
      draw.make("text", { class: "k", x: x(place), y: TOP - 10, "text-anchor": x(place) > 250 ? "end" : "start" }, `now ${at(place)}`);
      draw.make("rect", { class: "shape", x: x(place) - 4, y: y(costs[place][0]) - 4, width: 8, height: 8 });
      // Cheaper beyond chance: above the upper limit of none, below the lower limit of this one, and picked among many.
      const told = best === place ? "" : known(costs[place][1]) && costs[best][2] < costs[place][1]
        ? `; a threshold of ${at(best)} is cheaper, ${many(costs[best][0])}` : `; dashed: the least, ${many(costs[best][0])} at ${at(best)}, within chance of this one`;
      figure.querySelector("span").textContent = `${many(costs[place][0])} at ${at(place)}${told}`;
      draw.done();
    }

    function put() {
      const [share, costFp, costFn] = [Math.min(0.5, Math.max(1e-4, number("share"))), number("cost_fp"), number("cost_fn")];
      if (![share, costFp, costFn].every((one) => one > 0)) return;
      const place = nearest(number("threshold"));
      const now = outcome(rates, place, share, costFp, costFn);
      const wrong = known(now.precision[0]) ? `${hundred(1 - now.precision[0])} alerts are false` : "no alert is raised";
      const cut = rates.t ? ` and a threshold of ${signed(+rates.t[place].toPrecision(3))}` : "";
      section.querySelector(".say").textContent = `At ${percent(share)} ${rates.label}${cut}, ${wrong} and ${hundred(rates.recall[place][0])} cases are caught.`;
      const [recall, ends] = limited(...rates.recall[place]);
      fact("alerts", many(now.caught + now.wrong), `${many(now.wrong)} of them false`);
      fact("caught", many(now.caught), `recall ${recall}${ends ? ` (${ends})` : ""}`);
      fact("missed", many(now.missed), `of ${many(share)} cases`);
      fact("precision", ...limited(...now.precision));
      fact("cost", many(now.cost[0]), known(now.cost[1]) ? `${many(now.cost[1])} to ${many(now.cost[2])}` : "");
      drawShares(place, share, now);
      drawCosts(place, share, costFp, costFn);
    }

    // Each slider goes over the range of its field, by the logarithm where that is said.
    form.querySelectorAll("input[type=range]").forEach((range) => {
      const field = form.elements[range.dataset.of];
      const log = "log" in range.dataset;
      const [low, high] = log ? [field.min, field.max].map((end) => Math.log(end)) : [rates.t[0], rates.t.at(-1)];
      const follow = () => { range.value = 1000 * ((log ? Math.log(field.value) : field.value) - low) / (high - low || 1); };
      range.addEventListener("input", () => {
        const value = low + (high - low) * range.value / 1000;
        field.value = +(log ? Math.exp(value) : rates.t[nearest(value)]).toPrecision(log ? 2 : 3);
        put();
      });
      field.addEventListener("input", () => { follow(); put(); });
      follow();
    });
    form.addEventListener("change", (event) => {
      if (event.target.name === "class") { form.requestSubmit(); return; }
      // A page of its own can be sent as it stands; within a run it is one part of many.
      if (!location.pathname.endsWith("/simulator")) return;
      history.replaceState(null, "", `?${new URLSearchParams(new FormData(form))}`);
    });
    put();
  }

  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-theme-button]").forEach(themeButton);
    document.querySelectorAll("table[data-sort]").forEach(sortable);
    document.querySelectorAll("[data-simulator]").forEach(simulator);
    parts();
  });
})();
