// On the page of all metrics: rows that have every word, and headings that have a row. Without it all are shown.
addEventListener("DOMContentLoaded", () => {
  const parts = [...document.querySelectorAll("article section section")];
  const field = Object.assign(document.createElement("input"), {type: "search", placeholder: "Filter, such as: f1 macro"});
  field.setAttribute("aria-label", "Filter metrics");
  field.style = "width: 100%; padding: .4em; font: inherit; color: inherit; background: none; border: 1px solid";
  parts[0].before(field);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const part of parts) {
      const rows = [...part.querySelectorAll("tbody tr")];
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      part.hidden = rows.every((row) => row.hidden);
    }
  });
});
