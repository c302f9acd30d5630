/** What changed between two texts, by lines: the longest common lines stay, the others go or come. */
export interface Change {
  kind: " " | "-" | "+";
  text: string;
}

const MOST = 4_000_000; // cells that are compared; beyond that all between the ends counts as changed

export function diff(before: string, after: string): Change[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const same = (lines: string[]): Change[] => lines.map((text) => ({ kind: " ", text }));
  return [
    ...same(a.slice(0, head)),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...same(a.slice(a.length - tail)),
  ];
}

function middle(a: string[], b: string[]): Change[] {
  const out: Change[] = [];
  const gone = (text: string) => out.push({ kind: "-", text });
  const come = (text: string) => out.push({ kind: "+", text });
  if (a.length * b.length > MOST) {
    a.forEach(gone);
    b.forEach(come);
    return out;
  }
  const wide = b.length + 1;
  const long = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      long[i * wide + j] = a[i] === b[j] ? long[(i + 1) * wide + j + 1]! + 1 : Math.max(long[(i + 1) * wide + j]!, long[i * wide + j + 1]!);
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      out.push({ kind: " ", text: a[i]! });
      i += 1;
      j += 1;
    } else if (long[(i + 1) * wide + j]! >= long[i * wide + j + 1]!) gone(a[i++]!);
    else come(b[j++]!);
  }
  a.slice(i).forEach(gone);
  b.slice(j).forEach(come);
  return out;
}
