/** Drops columns of a table that has no room for all of them; `tables.css` hides the columns that `data-dropped` names. */

/**
 * Keep a table as wide as its place, now and whenever the place changes its width.
 * @param {HTMLTableElement} table
 * @param {string[]} order keys of columns that may be dropped, the least important first; `bar`: the bars of all columns
 * @param {(dropped: string[]) => void} [told] called with the keys of the columns that are dropped
 * @returns {() => void} to be called when the content has changed
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
