// The order of what a search finds: headings first, then pages by room, how-to before the rest.
const ROOMS = { "how-to": 4, start: 3, tutorials: 2, reference: 1, results: -4 };
var Scorer = {
  score: ([page, , , , score, , kind]) =>
    score + (kind === "title" ? 10 : 0) + (ROOMS[page.split("/")[0]] ?? 0),
  // Sphinx's own numbers; it takes all or none.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
