/** A heading and one line for each item, easy to read for models and people. */
export function asList(heading: string, lines: readonly string[]): string {
  return [`${heading}:`, ...lines.map((line) => `- ${line}`)].join('\n');
}

/** `1 note`, `3 notes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
