/** Drop columns of a table without room for all of them; `tables.css` hides the columns in `data-dropped`. */

/**
 * Fit a table to its container, now and after each change of width.
 *
 * @param {HTMLTableElement} table
 * @param {string[]} order keys of columns that may be dropped, least important first; `bar` means all bars.
 * @param {(dropped: string[]) => void} [told] called with the keys of dropped columns.
 * @returns {() => void} call it after a change of the content
 */
export function fitted(table, order, told = () => {}) {
  const place = table.parentElement;
  const fit = () => {
    let dropped = [];
    for (let number = 0; number <= order.length; number++) {
      dropped = order.slice(0, number);
      table.dataset.dropped = dropped.join(" ");
      if (table.offsetWidth <= place.clientWidth) break;
    }
    told(dropped);
  };
  let width = 0;
  new ResizeObserver(() => {
    if (width === place.clientWidth) return;
    width = place.clientWidth;
    fit();
  }).observe(place);
  return fit;
}
