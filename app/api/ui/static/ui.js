// What pages do besides being read: the theme, tables that sort, parts that are loaded behind the rest, the slider.
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
  const number = (text) => parseFloat(text.replace("−", "-").replace(/,/g, ""));
  function compared(a, b, numeric, rising) {
    if (!numeric) return rising ? a.localeCompare(b) : b.localeCompare(a);
    const [x, y] = [number(a), number(b)];
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return rising ? x - y : y - x;
  }

  // Tables of one name are one list: the rows of all are sorted together.
  function sortable(table) {
    const peers = [...document.querySelectorAll(`table[data-sort="${table.dataset.sort}"]`)];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.dataset.k) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
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
      const form = section.querySelector("form");
      if (form) form.addEventListener("submit", (event) => {
        event.preventDefault();
        load(section, `${section.dataset.part}?${new URLSearchParams(new FormData(form))}`);
      });
      section.querySelectorAll("[data-what-if]").forEach(slider);
    } finally {
      section.removeAttribute("aria-busy");
    }
  }

  function parts() {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        seen.unobserve(entry.target);
        load(entry.target, entry.target.dataset.part);
      }
    }, { rootMargin: "600px" });
    document.querySelectorAll("[data-part]").forEach((section) => seen.observe(section));
    addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  }

  function slider(panel) {
    const { names, shares, at } = JSON.parse(panel.dataset.whatIf);
    const [input, output, list] = ["input", "output", "dl"].map((name) => panel.querySelector(name));
    const put = () => {
      output.textContent = shares[input.value];
      input.setAttribute("aria-valuetext", shares[input.value].replace("%", "percent"));
      list.replaceChildren(...names.flatMap((name, place) => {
        const [term, value] = [document.createElement("dt"), document.createElement("dd")];
        term.textContent = name;
        value.textContent = at[input.value][place];
        return [term, value];
      }));
    };
    const keep = () => {
      // The page of its own can be sent as it stands; within a run it is one part of many.
      if (!location.pathname.endsWith("/what-if")) return;
      const address = new URL(location.href);
      address.searchParams.set("share", parseFloat(shares[input.value]));
      history.replaceState(null, "", address);
    };
    input.addEventListener("input", put);
    input.addEventListener("change", keep);
    put();
  }

  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-theme-button]").forEach(themeButton);
    document.querySelectorAll("table[data-sort]").forEach(sortable);
    document.querySelectorAll("[data-what-if]").forEach(slider);
    parts();
  });
})();
