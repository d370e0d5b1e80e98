/** A number with its noun: `1 tool`, `2 tools`, `0 properties`. */
export function counted(count: number, noun: string): string {
  if (count === 1) return `${count} ${noun}`;
  return `${count} ${noun.replace(/(?<![aeiou])y$/, 'ie')}s`;
}
