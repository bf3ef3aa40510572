// Look into a table of the book: filtered by what its columns hold, sorted, and kept in the address.
"use strict";

const FEW = 40; // values of a column that a list can offer
const ROWS = 200; // rows that are drawn; the rest waits for a filter
const OWN = ["table", "sort"]; // names of the address that are no columns
const names = Object.keys(window.bookTables);

/** The script of a table, which puts it into window.bookTables; asked for once. */
function loadTable(name) {
  const known = window.bookTables[name];
  if (known.columns) return Promise.resolve(known);
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(`../_static/tables/${name}.js`, location.href);
    script.onload = () => resolve(window.bookTables[name]);
    script.onerror = () => reject(new Error(`The table ${name} could not be loaded.`));
    document.head.append(script);
  });
}

/** The columns to filter by: [place, values], where all are text, whole numbers or yes and no, and few. */
function listFilters(table) {
  return table.columns.flatMap((_, k) => {
    const values = [...new Set(table.rows.map((row) => row[k]))];
    const plain = values.every((value) => value === null || typeof value !== "number" || Number.isInteger(value));
    return plain && values.length > 1 && values.length <= FEW ? [[k, values.sort(compare)]] : [];
  });
}

/** Numbers by size, all else by its letters, nothing last. */
function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** What a cell shows. */
function write(value) {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(5))) : String(value);
}

/** The rows that fit a choice of values by column name, sorted by a column or its reverse ("-name"). */
function chooseRows(table, choice) {
  const asked = table.columns.filter((name) => choice.has(name) && !OWN.includes(name));
  const wanted = asked.map((name) => [table.columns.indexOf(name), choice.get(name)]);
  const rows = table.rows.filter((row) => wanted.every(([k, value]) => write(row[k]) === value));
  const sort = choice.get("sort") ?? "", k = table.columns.indexOf(sort.replace(/^-/, ""));
  if (k >= 0) rows.sort((a, b) => compare(a[k], b[k]) * (sort.startsWith("-") ? -1 : 1));
  return rows;
}

/** A row of header or body cells. */
function makeRow(cells, tag = "td") {
  const row = document.createElement("tr");
  row.append(...cells.map((cell) => {
    const box = document.createElement(tag);
    box.append(cell);
    return box;
  }));
  return row;
}

/** Head and body of a table; a click on a column's name sorts by it, a second one in reverse. */
function drawTable(box, name, table, rows, choice, sortBy) {
  const [body, head, all] = ["tbody", "thead", "table"].map((tag) => document.createElement(tag));
  const caption = Object.assign(document.createElement("caption"), { textContent: `${name}.json` });
  head.append(makeRow(table.columns.map((column) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: column });
    button.addEventListener("click", () => sortBy(choice.get("sort") === column ? `-${column}` : column));
    return button;
  }), "th"));
  [...head.rows[0].cells].forEach((cell, k) => {
    cell.scope = "col";
    const place = ["", "-"].findIndex((sign) => choice.get("sort") === sign + table.columns[k]);
    if (place >= 0) cell.ariaSort = ["ascending", "descending"][place];
  });
  body.append(...rows.slice(0, ROWS).map((row) => makeRow(row.map(write))));
  all.className = "bnn";
  all.append(caption, head, body);
  box.replaceChildren(all);
}

/** Keep the choice in the address, which then shows the same to others. */
function keepChoice(choice) {
  const url = new URL(location.href);
  url.search = choice.toString();
  history.replaceState(null, "", url);
}

/** Whether it is another table that was chosen. */
const isTable = (event) => event.target.name === "table";

/** The form above the list of tables, and the table that it names. */
function startViewer() {
  let choice = new URLSearchParams(location.search);
  const form = Object.assign(document.createElement("form"), { className: "row-filter" });
  const status = document.createElement("p"), box = document.createElement("div");
  status.setAttribute("role", "status");
  Object.assign(box, { className: "table-scroll table-viewer", tabIndex: 0, role: "region" });
  box.ariaLabel = "Rows of the table";
  document.querySelector("#the-tables table").before(form, box);

  const sortBy = (sort) => {
    choice.set("sort", sort);
    keepChoice(choice);
    update();
  };
  const update = async () => {
    const name = names.includes(choice.get("table")) ? choice.get("table") : "";
    const options = [["", "choose one"], ...names.map((each) => [each, `${each} (${window.bookTables[each].n})`])];
    const fields = [makeSelect("table", "Look into a table", options, name)];
    box.hidden = !name;
    try {
      if (name) {
        const table = await loadTable(name);
        if (name !== choice.get("table")) return; // another one was chosen while this one came
        const rows = chooseRows(table, choice);
        for (const [k, values] of listFilters(table)) {
          const column = table.columns[k], each = values.map((value) => [write(value), write(value)]);
          fields.push(makeSelect(column, column, [["", "all"], ...each], choice.get(column)));
        }
        drawTable(box, name, table, rows, choice, sortBy);
        const more = rows.length > ROWS ? `, the first ${ROWS} shown` : "";
        status.textContent = `${rows.length} of ${table.rows.length} rows${more}`;
      } else status.textContent = "";
    } catch (error) {
      status.textContent = error.message;
    }
    const asked = document.activeElement?.name;
    form.replaceChildren(...fields, status);
    if (asked) form.elements[asked]?.focus();
  };
  form.addEventListener("change", (event) => {
    const old = choice;
    const fields = [...new FormData(form)].filter(([name, value]) => value && (name === "table" || !isTable(event)));
    choice = new URLSearchParams(fields);
    if (!isTable(event) && old.has("sort")) choice.set("sort", old.get("sort"));
    keepChoice(choice);
    update();
  });
  update();
}

startViewer();
