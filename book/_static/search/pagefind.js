// Pagefind wants all words of a query on one page, anywhere, and takes a word that begins so for the word. Here pages come
// first that have the very words, beside each other; where no page has them all, those that have some; and a word that is
// nowhere finds nothing. The search finds this file by <pagefind-config bundle-path>.
import { createInstance as create } from "../../pagefind/pagefind.js";

const HELPERS = /(<mark>)?[^\s<>]*\u2063[^\s<>]*(<\/mark>)?\s*/g; // words that readers ask for (book_search.py)
const MARKED = /<mark>(.*?)<\/mark>/g;
const SMALL = new Set(("and are but can did does for from has have how its not than that the their this use versus was what "
  + "when where which who why will with you your").split(" ")); // words of a question that are on every page
const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

/** Whether a word that was found is the one asked for, or begins so, or is another form of it. */
function isMeant(found, asked) {
  const [one, other] = [plain(found), plain(asked)], shorter = one.length < other.length ? one : other;
  let alike = 0;
  while (alike < shorter.length && one[alike] === other[alike]) alike += 1;
  return alike >= other.length || (alike >= 4 && alike >= other.length - 3 && one.length <= other.length + 3);
}

/** A word's pages, without those that Pagefind takes from its first letters where it finds nothing. */
async function searchWord(search, word, options) {
  const found = await search(word, options);
  const first = await Promise.all(found.results.slice(0, 3).map((result) => result.data()));
  const marked = first.flatMap((page) => [page, ...page.sub_results]).flatMap(({ excerpt }) =>
    [...excerpt.matchAll(MARKED)].map(([, text]) => text));
  return marked.some((text) => isMeant(text, word)) ? found : { ...found, results: [] };
}

/** The pages that have some words of a query, those with the most and the most telling first. */
async function searchAny(search, words, options) {
  const found = new Map();
  for (const { results } of await Promise.all(words.map((word) => searchWord(search, word, options)))) {
    const best = Math.max(...results.map(({ score }) => score));
    for (const result of results) {
      const before = found.get(result.id);
      const gain = (1 + result.score / best) / Math.sqrt(results.length); // a rare word tells more
      found.set(result.id, { ...result, score: (before?.score ?? 0) + gain });
    }
  }
  return [...found.values()].sort((one, other) => other.score - one.score);
}

/** What is shown of a result: no helper words, and no excerpt twice. */
function showOnce(result) {
  return { ...result, data: async () => {
    const page = await result.data(), clean = (text) => text.replace(HELPERS, "").trim();
    const parts = page.sub_results.map((part) => ({ ...part, excerpt: clean(part.excerpt) }));
    const excerpt = clean(page.excerpt);
    return { ...page, excerpt: parts.some((part) => part.excerpt === excerpt) ? "" : excerpt, sub_results: parts };
  } };
}

/** Pagefind's own instance, with a search of its own. */
export function createInstance(options) {
  const pagefind = create(options), { search } = pagefind;

  async function find(query, asked) {
    const long = query?.match(/[^\s"]{3,}/g) ?? [], telling = long.filter((word) => !SMALL.has(word.toLowerCase()));
    const words = telling.length ? telling : long;
    if (!words.length || query.includes('"')) return search(query, asked);
    const each = await Promise.all(words.map((word) => searchWord(search, word, asked)));
    const nowhere = each.find(({ results }) => !results.length); // then no page has them all, whatever begins so
    const all = nowhere ?? (words.length > 1 ? await search(words.join(" "), asked) : each[0]);
    const said = await Promise.all([query.trim(), words.join(" ")].map((phrase) => search(`"${phrase}"`, asked)));
    const beside = said.map(({ results }) => new Map(results.map((result) => [result.id, result])));
    const tier = ({ id }) => beside.findIndex((found) => found.has(id)); // -1 is the last
    const results = [0, 1, -1].flatMap((wanted) => all.results.filter((result) => tier(result) === wanted))
      .map((result) => beside[tier(result)]?.get(result.id) ?? result);
    return { ...all, results: results.length || words.length < 2 ? results : await searchAny(search, words, asked) };
  }

  return { ...pagefind, search: async (query, asked) => {
    const found = await find(query, asked);
    return found && { ...found, results: found.results.map(showOnce) };
  } };
}
