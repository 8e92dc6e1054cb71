// Replay of the trace: the blocks at each node and the use of each arc after a number of rounds.
// All scripts use these names: held[node] maps each block at a node to the round of its arrival (0:
// its own), newest[node] is the last block that arrived, came[node] the round of this arrival (-1:
// none), used[node * degree + port] the number of transfers over an arc, and shown the number of
// rounds that have been replayed.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
// Make an element with a text. Why textContent: names come from files of strangers, and must not
// become markup.
function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
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

// Group the contributions of a reduction by their sums. A sum has a group, a destination and a chunk.
function sums(ids) {
  const found = new Map();
  for (const id of ids) {
    const [, to, chunk, group] = blocks[id], key = `${to},${chunk},${group}`;
    if (!found.has(key)) found.set(key, { key, to, chunk, group, whole: data.whole[group], ids: [] });
    found.get(key).ids.push(id);
  }
  return [...found.values()];
}
const summed = (sum, ids = sum.ids) => `${ids.length} of ${sum.whole} summed`;
const sumName = ({ to, chunk, group }) => "sum" + (data.whole.length > 1 ? ` of group ${group}` : "")
  + (to < 0 ? "" : ` for ${names[to]}`) + (data.chunks > 1 ? `, chunk ${chunk}` : "");
// Return the nodes at which partial sums are added in a round, with the sum, the number of its
// contributions before, and its contributions after. A complete sum that arrives is not added.
function meetings(round) {
  const arriving = new Map(), found = [];
  for (const [node, ports, ids] of data.whole.length ? rounds[round] : []) {
    const there = ports.reduce((here, port) => near[here][port], node);
    for (const sum of sums(ids)) {
      const key = `${there},${sum.key}`;
      if (!arriving.has(key)) arriving.set(key, { node: there, sum, ids: new Set() });
      if (sum.ids.length < sum.whole) sum.ids.forEach(id => arriving.get(key).ids.add(id));
    }
  }
  for (const { node, sum, ids } of arriving.values()) {
    if (!ids.size) continue;
    const mine = sums(held[node].keys()).find(s => s.key === sum.key);
    const before = mine ? mine.ids : [], after = new Set([...before, ...ids]);
    found.push({ node, sum, before: before.length, after: [...after] });
  }
  return found;
}

// The blocks that the reader follows, and for each round the transfers that carry one of them.
let followed = null;
function follow(ids) {
  followed = ids && { ids: new Set(ids), moves: rounds.map(moves =>
    moves.filter(([, , carried]) => carried.some(id => ids.includes(id)))) };
}
const isFollowed = ids => !followed || ids.some(id => followed.ids.has(id));
const hasFollowed = node => followed && [...followed.ids].some(id => held[node].has(id));
