// Pagefind wants all words of a query on one page, anywhere. Here pages come first that have them beside each other; and
// where no page has them all, those that have some. The search finds this file by <pagefind-config bundle-path>.
import { createInstance as create } from "../../pagefind/pagefind.js";

/** The pages that have some words of a query, those with the most and the most telling first. */
async function searchAny(search, words, options) {
  const found = new Map();
  for (const { results } of await Promise.all(words.map((word) => search(word, options)))) {
    const best = Math.max(...results.map(({ score }) => score));
    for (const result of results) {
      const before = found.get(result.id);
      found.set(result.id, { ...result, score: (before?.score ?? 0) + 1 + result.score / best });
    }
  }
  return [...found.values()].sort((one, other) => other.score - one.score);
}

/** Pagefind's own instance, with a search of its own for queries of several words. */
export function createInstance(options) {
  const pagefind = create(options), { search } = pagefind;
  return { ...pagefind, search: async (query, asked) => {
    const all = await search(query, asked), words = query?.match(/[^\s"]{3,}/g) ?? [];
    if (words.length < 2 || query.includes('"')) return all;
    const beside = new Map((await search(`"${query.trim()}"`, asked)).results.map((result) => [result.id, result]));
    const first = all.results.filter(({ id }) => beside.has(id)).map(({ id }) => beside.get(id));
    const results = [...first, ...all.results.filter(({ id }) => !beside.has(id))];
    return { ...all, results: results.length ? results : await searchAny(search, words, asked) };
  } };
}
