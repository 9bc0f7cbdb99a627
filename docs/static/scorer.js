// Read by the search of Sphinx: the page of a metric comes first for who writes its key.
var Scorer = {
  score: ([page, , , , score]) =>
    page === `metrics/${(new URLSearchParams(location.search).get("q") || "").trim().toLowerCase()}` ? 1000 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
