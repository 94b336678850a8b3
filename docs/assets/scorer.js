// The order of search results. What is added to the score of a page; a word in its text counts 5,
// in its title up to 115. So a guide page that mentions a word comes before other pages that do,
// a title with the word comes before both, and the reference comes last.
const GROUPS = [
  [/^(index|tutorial$|tutorials\/|guide\/|command_line$|benchmarks\/speed$)/, 30],
  [/^gallery\//, 10],
  [/^(architecture|bench|extending|notation|results\/honest_older)$/, -20],
  [/^reference\//, -500],
];

var Scorer = {
  score: ([docname, , , , score]) => {
    const group = GROUPS.find(([pattern]) => pattern.test(docname));
    return score + (group === undefined ? 0 : group[1]);
  },
  // What Sphinx itself counts.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
