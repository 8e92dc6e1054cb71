// Order of the results of the search. Sphinx reads this file; a result is
// [page, title, anchor, description, score, file, kind].
// Terms of the glossary come first, then pages, guides before others, and last the members of classes.
var Scorer = {
  BONUS: { start: 8, tutorials: 8, "how-to": 8, gallery: 8, understanding: 6, reference: 6, comparisons: 3 },
  TERM: 20,
  MEMBER: -1000,
  // The number of a result; results with higher numbers come first.
  score: ([page, , anchor, , score, , kind]) => {
    if (page === "reference/glossary" && anchor.startsWith("#term-")) return score + Scorer.TERM;
    if (page.startsWith("reference/api/")) {
      // torusfabric.Fabric is a class with a page, torusfabric.Fabric.top one of its members.
      if (anchor.split(".").length > 2) return score + Scorer.MEMBER;
      return Math.min(score, Scorer.title);
    }
    if (kind === "index") return Math.min(score, Scorer.title);
    return score + (Scorer.BONUS[page.split("/")[0]] ?? 0);
  },
  // The numbers of Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
