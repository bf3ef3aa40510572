// The register of claims, filtered by chapter and verdict. The address keeps the choice, so that it can be shared.
"use strict";

const VERDICTS = { all: "holds or not", yes: "holds", no: "does not hold" };

/** Every row of the register with what it is filtered by. */
function readRows() {
  return [...document.querySelectorAll("article table.bnn tbody tr")].map((row) => ({
    row,
    box: row.closest(".table-scroll"),
    chapter: row.querySelector("a").getAttribute("href").split(".html")[0],
    title: row.closest("table").caption.textContent,
    verdict: row.querySelector(".verdict.yes") ? "yes" : "no",
  }));
}

/** Show the rows of this chapter and this verdict, and the tables that have some; returns how many. */
function showRows(rows, chapter, verdict) {
  const boxes = new Map();
  let shown = 0;
  rows.forEach((each) => {
    const fits = ["all", each.chapter].includes(chapter) && ["all", each.verdict].includes(verdict);
    each.row.hidden = !fits;
    boxes.set(each.box, boxes.get(each.box) || fits);
    shown += fits;
  });
  boxes.forEach((some, box) => { box.hidden = !some; });
  return shown;
}

/** Keep a choice in the address; what is not filtered is left out. */
function keepChoice(choice) {
  const url = new URL(location.href);
  Object.entries(choice).forEach(([name, value]) => {
    if (value === "all") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  });
  history.replaceState(null, "", url);
}

/** Put the filter above the tables, set as the address says. */
function startFilter() {
  const rows = readRows(), asked = new URLSearchParams(location.search);
  const chapters = { all: "all pages", ...Object.fromEntries(rows.map((each) => [each.chapter, each.title])) };
  const form = Object.assign(document.createElement("form"), { className: "row-filter" });
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  form.append(
    makeSelect("chapter", "Page", Object.entries(chapters), asked.get("chapter")),
    makeSelect("verdict", "Verdict", Object.entries(VERDICTS), asked.get("verdict")),
    status,
  );
  const update = () => {
    const choice = Object.fromEntries(new FormData(form));
    status.textContent = `${showRows(rows, choice.chapter, choice.verdict)} of ${rows.length} claims shown`;
    return choice;
  };
  form.addEventListener("change", () => keepChoice(update()));
  rows[0].box.before(form);
  update();
}

startFilter();
