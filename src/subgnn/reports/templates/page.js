// Search, sorting and CSV download of tables, and quick titles of marks. All text stays text.
"use strict";
(() => {
  const cellsOf = (row) => [...row.cells].map((cell) => cell.textContent.trim());

  function download(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name.replace(/[^\w.()-]+/g, "_");
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // A spreadsheet would take these for formulas; a quote makes them text.
  const isFormula = (text) => /^[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
  const safe = (text) => (isFormula(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = (rows) => rows.map((row) => row.map(safe).map(quoted).join(",") + "\r\n").join("");

  function sortable(table) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : head.dataset.first === "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => {
          const text = cellsOf(row)[column] ?? "";
          const number = Number(text.replace(/[,+]/g, "").replace("\u2212", "-").split(" ")[0]);
          return { row, text, number: text === "" || Number.isNaN(number) ? null : number };
        });
        const sign = down ? -1 : 1;
        keyed.sort((a, b) => {
          if (a.number !== null && b.number !== null) return sign * (a.number - b.number);
          if (a.number !== null || b.number !== null) return a.number === null ? 1 : -1;
          return sign * a.text.localeCompare(b.text);
        });
        body.append(...keyed.map((each) => each.row));
      });
    });
  }

  function tools(box) {
    const table = document.getElementById(`${box.dataset.tools}-table`);
    const search = box.querySelector("input[type=search]");
    const wrong = box.querySelector("input[type=checkbox]");
    const status = box.querySelector("[role=status]");
    const rows = [...table.tBodies[0].rows];
    const texts = new Map(rows.map((row) => [row, cellsOf(row).join("\n").toLowerCase()]));
    const find = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = words.every((word) => texts.get(row).includes(word)) && !(wrong?.checked && !row.classList.contains("wrong"));
        row.hidden = !fits;
        shown += fits;
      }
      status.textContent = shown < rows.length ? `${shown} of ${rows.length}` : "";
    };
    search.addEventListener("input", find);
    wrong?.addEventListener("change", find);
    const button = box.querySelector("[data-file]");
    button.addEventListener("click", () => {
      const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      download(button.dataset.file, csv([table.tHead.rows[0], ...shown].map(cellsOf)), "text/csv");
    });
    box.hidden = false;
  }

  // Browsers show a title after a second, and not at all on a phone.
  function titles() {
    const box = document.createElement("div");
    box.className = "tip";
    box.hidden = true;
    document.body.append(box);
    const show = (event) => {
      const mark = event.target;
      const title = mark instanceof SVGElement ? [...mark.children].find((child) => child.tagName === "title") : null;
      if (title) {
        mark.dataset.title = title.textContent;
        title.remove();
      }
      box.hidden = !mark.dataset?.title;
      if (box.hidden) return;
      box.textContent = mark.dataset.title;
      const left = Math.min(event.clientX + 12, document.documentElement.clientWidth - box.offsetWidth - 4);
      box.style.left = `${Math.max(4, left) + scrollX}px`;
      box.style.top = `${event.clientY + 16 + scrollY}px`;
    };
    document.addEventListener("pointerover", show);
    document.addEventListener("pointerdown", show);
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("[data-tools]").forEach(tools);
  titles();
})();
