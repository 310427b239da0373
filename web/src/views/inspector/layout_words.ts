// The steps that lined two layouts up, as a person would say them. What is not known here is shown as it came.

const verbs: [RegExp, (first: string, second: string) => string][] = [
  [/^squeeze (.*)$/, (axes) => `axis ${axes.replaceAll(",", ", ")} of size 1 dropped`],
  [/^permute (.*)$/, (order) => `axes in the order ${order.replaceAll(",", ", ")}`],
  [/^reshape (.*)$/, (to) => `elements reshaped to [${to.replaceAll(",", ", ")}]`],
  [/^concatenate (shards|experts) on (.*)$/, (parts, axis) => `${parts} joined along ${axis}`],
  [/^sum shards$/, () => "shards added up"],
  [/^sum (axis .*)$/, (axis) => `${axis} added up`],
];

export function stepWords(step: string): string {
  const [, side = "", action = step] = /^([ab]): (.*)$/.exec(step) ?? [];
  for (const [pattern, words] of verbs) {
    const match = pattern.exec(action);
    if (match) return `${side.toUpperCase()}’s ${words(match[1] ?? "", match[2] ?? "")}`;
  }
  return side ? `${side.toUpperCase()}: ${action}` : action;
}
