// Tables that are renewed in place: a row keeps its element, so that focus and selection stay where they are. On a phone a row is a paragraph;
// the roles say that it is a row all the same.

import { isolated, plain } from "./plain_text.js";

function element(tag, role, parent) {
  const made = document.createElement(tag);
  made.setAttribute("role", role);
  parent.append(made);
  return made;
}

const isActing = column => column.kind === "acts" || column.kind === "act";

export class Table {
  // `columns`: `{ head, kind }`; kind "n" is a figure, "short" is not broken, "long" and "url" are broken anywhere, "acts" (and "act", of one button) holds
  // what the row's `acts()` made once.
  constructor(table, caption, columns, empty) {
    this.columns = columns;
    this.rows = new Map();
    table.className = "rows";
    table.setAttribute("role", "table");
    this.caption = document.createElement("caption");
    this.caption.textContent = caption;
    table.append(this.caption);
    const line = element("tr", "row", element("thead", "rowgroup", table));
    for (const column of columns) {
      const head = element("th", "columnheader", line);
      head.scope = "col";
      head.textContent = column.head;
      if (column.kind === "n") head.className = "n";
    }
    this.body = element("tbody", "rowgroup", table);
    this.empty = document.createElement("tr");
    this.empty.setAttribute("role", "row");
    const cell = element("td", "cell", this.empty);
    cell.colSpan = columns.length;
    cell.textContent = empty;
    this.body.append(this.empty);
  }

  setCaption(text) {
    if (this.caption.textContent !== text) this.caption.textContent = text;
  }

  // `rows`: `{ key, cells }`, a cell for each column that does not act; `acts` makes the content of those that do.
  update(rows) {
    const before = this.rows;
    this.rows = new Map();
    let last = this.empty;
    for (const row of rows) {
      const held = before.get(row.key) || this.begin(row);
      before.delete(row.key);
      this.rows.set(row.key, held);
      this.fill(held, row);
      if (last.nextSibling !== held.line) last.after(held.line);
      last = held.line;
    }
    for (const gone of before.values()) gone.line.remove();
    this.empty.hidden = rows.length > 0;
  }

  begin(row) {
    const line = document.createElement("tr");
    line.setAttribute("role", "row");
    const cells = this.columns.map(column => {
      const cell = element("td", "cell", line);
      if (column.kind) cell.className = column.kind;
      cell.dataset.head = column.head;
      if (isActing(column)) cell.append(row.acts());
      return cell;
    });
    return { line, cells, texts: [] };
  }

  fill(held, row) {
    let at = 0;
    this.columns.forEach((column, place) => {
      if (isActing(column)) return;
      const text = plain(row.cells[at++] ?? "");
      if (held.texts[place] === text) return;
      held.texts[place] = text;
      held.cells[place].replaceChildren(...(text === "" ? [] : [isolated(text)]));
    });
  }
}
