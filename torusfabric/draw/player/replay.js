// What every node holds, and what every arc has carried, after a number of rounds.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const { nodes, names, steps, near, opposite, joined, rounds, cycles, blocks, start, unit } = data;
const count = nodes.length, last = rounds.length, degree = opposite.length;
let shown = -1, held = [], newest = [], came = [], used = [];

function reset() {
  held = start.map(ids => new Map(ids.map(id => [id, 0])));
  newest = start.map(ids => ids.length ? ids[ids.length - 1] : -1);
  came = start.map(ids => ids.length ? 0 : -1);
  used = new Array(count * degree).fill(0);
  shown = 0;
}
function replay(upto) {
  if (upto < shown || shown < 0) reset();
  for (; shown < upto; shown++)
    for (const [node, ports, ids] of rounds[shown]) {
      let there = node;
      for (const port of ports) { used[there * degree + port]++; there = near[there][port]; }
      for (const id of ids) {
        if (!held[there].has(id)) held[there].set(id, shown + 1);
        newest[there] = id; came[there] = shown + 1;
      }
    }
}
replay(last);
const final = held.map(ids => ids.size);
const mostUsed = Math.max(1, ...used);
reset();

const origin = id => blocks[id][0];
function name(id) {
  const [from, to, chunk] = blocks[id];
  return names[from] + (to < 0 ? "" : ` for ${names[to]}`) + (data.chunks > 1 ? `, chunk ${chunk}` : "");
}

// What is followed: some blocks, and the transfers that carry one of them, round by round.
let followed = null;
function follow(ids) {
  followed = ids && { ids: new Set(ids), moves: rounds.map(moves =>
    moves.filter(([, , carried]) => carried.some(id => ids.includes(id)))) };
}
const isFollowed = ids => !followed || ids.some(id => followed.ids.has(id));
const hasFollowed = node => followed && [...followed.ids].some(id => held[node].has(id));
