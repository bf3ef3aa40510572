// Search as you type, in the theme's dialog and on search.html, by the index that book_search.py makes with Pagefind.
// A browser does not let a page that was opened as a file load that index: there, Enter leads to Sphinx's own search.
"use strict";
(() => {
  const PAGES = 8, SECTIONS = 3, SNIPPET = 30;  // pages at a time, sections of a page, words
  const OWN_SEARCH = ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"];  // Sphinx's, in this order
  const UNAVAILABLE = "The index of this search did not load (a page that was opened as a file may not load it). "
    + "Press Enter for a simpler search.";
  const forms = [...document.querySelectorAll("form.bd-search")];
  const root = new URL(".", forms[0].action);

  /** Pagefind, loaded once: a promise, which fails where it cannot be had. */
  let loading;
  function loadPagefind() {
    loading ??= location.protocol === "file:"
      ? Promise.reject(new Error("a page opened as a file may not load modules"))
      : import(new URL("pagefind/pagefind.js", root)).then(async (pagefind) => {
        await pagefind.options({ baseUrl: root.pathname, noWorker: true });
        return pagefind;
      });
    return loading;
  }

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  function splitWords(text) {
    return text.trim().split(/\s+/);
  }

  /** Words from one place to another, those found marked: nodes. */
  function markWords(words, from, to, found) {
    return words.slice(from, to).flatMap((word, k) => [found.has(from + k) ? make("mark", {}, word) : word, " "]);
  }

  /** Where the words of a section begin and end in those of its page. */
  function delimit({ anchor: { location: start } }, page) {
    const later = page.anchors.map((anchor) => anchor.location).filter((place) => place > start);
    return [start, Math.min(...later, page.words.length)];
  }

  /** How much a section has of what is sought: a short one that is about it has more than a long one in passing. */
  function weigh(section, page) {
    const [start, end] = delimit(section, page);
    return section.weighted_locations.reduce((sum, place) => sum + place.balanced_score, 0) / (300 + end - start);
  }

  /** Where a snippet begins: at a sentence, if one begins shortly before the place where most was found. */
  function findStart(words, places, first) {
    const count = (place) => places.filter((other) => other >= place && other < place + SNIPPET).length;
    const best = places.reduce((a, b) => (count(b) > count(a) ? b : a), places[0] ?? first);
    const earliest = Math.max(first, best - SNIPPET / 2);
    for (let k = best; k > earliest; k--) if (endsSentence(words[k - 1])) return k;
    return earliest;
  }

  function endsSentence(word) {
    return /(?<!^al)[.?!:]["”)]?$/.test(word);  // "et al." ends none
  }

  /** Heading and snippet of a section where something was found: nodes. */
  function describeSection(section, page) {
    const { words } = page, title = splitWords(section.title), found = new Set(section.locations);
    const [start, end] = delimit(section, page), first = start + title.length;
    const from = findStart(words, section.locations.filter((place) => place >= first), first);
    const to = Math.min(from + SNIPPET, end);
    const heading = markWords(title, 0, title.length, new Set(section.locations.map((place) => place - start)));
    const snippet = markWords(words, from, to, found);
    if (from > first && !endsSentence(words[from - 1])) snippet.unshift("… ");
    if (to < end) snippet.push("…");
    return [make("a", { href: section.url }, ...heading), make("p", {}, ...snippet)];
  }

  /** A page's best sections. What stands before its first section belongs to the page's own heading. */
  function describePage(page) {
    page.words = splitWords(page.content);
    const best = [...page.sub_results].sort((a, b) => weigh(b, page) - weigh(a, page)).slice(0, SECTIONS);
    const isTop = (section) => section.anchor.element === "h1";
    const [title, ...snippet] = best.filter(isTop).flatMap((top) => describeSection(top, page));
    const sections = best.filter((section) => !isTop(section));
    return make("li", {}, make("h2", {}, title ?? page.meta.title), ...snippet,
      make("ul", {}, ...sections.map((section) => make("li", {}, ...describeSection(section, page)))));
  }

  /** Whether a page holds every word of a query. For "xyz" Pagefind offers what it has of its beginning, even "x". */
  function holds(page, query) {
    const plain = (text) => text.normalize("NFKD").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
    const words = splitWords(page.content), found = page.locations.map((place) => plain(words[place]));
    return splitWords(query).every((word) => found.some((other) => other.includes(plain(word).slice(0, 4))));
  }

  function link(text, path) {
    return make("a", { href: new URL(path, root) }, text);
  }

  function equip(form) {
    const input = form.querySelector("input"), dialog = form.closest("dialog");
    const status = make("p", { className: "search-status", role: "status" });
    const list = make("ul", { className: "search-found" });
    const more = make("button", { className: "btn", type: "button", hidden: true }, "Show more pages");
    const box = make("div", { className: "search-box" }, status, list, more);
    let further = [];

    async function showPages() {
      const results = further, pages = await Promise.all(results.splice(0, PAGES).map((result) => result.data()));
      if (results !== further) return [];  // a later query was faster
      more.hidden = !further.length;
      const items = pages.map(describePage);
      list.append(...items);
      return items;
    }

    function clear(...message) {
      further = [];
      list.replaceChildren();
      more.hidden = true;
      status.replaceChildren(...message);
    }

    async function search() {
      const query = input.value.trim();
      if (query.length < 2) return clear();
      const pagefind = await loadPagefind().catch(() => null);
      if (!pagefind) return clear(UNAVAILABLE);
      const answer = await pagefind.debouncedSearch(query, {}, 150);
      const first = await answer?.results[0]?.data();
      if (!answer || query !== input.value.trim()) return undefined;  // a later letter asks again
      if (!first || !holds(first, query)) {
        return clear(`Nothing found for “${query}”. Try fewer words, or the beginning of one, or look into the `,
          link("glossary", "book/glossary.html"), " or the ", link("index", "genindex.html"), ".");
      }
      clear(`“${query}” is found on ${answer.results.length === 1 ? "1 page" : `${answer.results.length} pages`}.`);
      further = answer.results;
      return showPages();
    }

    function move(event) {
      if (event.key === "Escape") event.stopPropagation();  // Sphinx would take it, and the dialog stay open
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const stops = [input, ...box.querySelectorAll("a, button:not([hidden])")];
      event.preventDefault();
      stops[stops.indexOf(document.activeElement) + step]?.focus();
    }

    form.after(box);
    form.addEventListener("keydown", move);
    box.addEventListener("keydown", move);
    box.addEventListener("click", (event) => { if (event.target.closest("a")) dialog?.close(); });
    more.addEventListener("click", async (event) => {
      event.stopPropagation();  // pressed by keyboard it has no place, and the theme would close the dialog
      const [item] = await showPages();
      item.querySelector("a").focus();
    });
    input.addEventListener("focus", () => { loadPagefind().catch(() => {}); });
    input.addEventListener("input", search);
    dialog?.setAttribute("aria-label", "Search");
    return { input, search };
  }

  /** search.html answers the query in its address. */
  async function answerAddress({ input, search }) {
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    if (!input.value) return undefined;
    if (await loadPagefind().catch(() => null)) return search();
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;  // it would fetch the pages, which files may not either
    return document.head.append(...OWN_SEARCH.map((path) => make("script", { src: new URL(path, root), async: false })));
  }

  const equipped = forms.map(equip);
  const own = forms.findIndex((form) => !form.closest("dialog"));
  if (own >= 0) answerAddress(equipped[own]);
})();
