/** A heading with one line for each thing, which both models and people read well. */
export function asList(heading: string, lines: readonly string[]): string {
  return [`${heading}:`, ...lines.map((line) => `- ${line}`)].join('\n');
}

/** `1 note`, `3 notes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
