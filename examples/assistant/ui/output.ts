import { stripVTControlCharacters, styleText } from 'node:util';

/** What the user sees, one line at a time. */
export const output = {
  /** Writes a line for the user. */
  say(line: string): void {
    process.stdout.write(`${plain(line)}\n`);
  },

  /** Writes a line about what is going on; pale on a terminal. */
  murmur(line: string): void {
    process.stdout.write(`${styleText('dim', plain(line), { stream: process.stdout })}\n`);
  },

  /** Writes a line that is no part of the output. */
  warn(line: string): void {
    process.stderr.write(`assistant: ${plain(line).replace(/\s*\n\s*/g, ' ')}\n`);
  },
} as const;

/** Text of a model or a file must not steer the terminal. */
function plain(text: string): string {
  return stripVTControlCharacters(text);
}
