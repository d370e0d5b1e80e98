import { stripVTControlCharacters, styleText } from 'node:util';

/** Whether the last line on standard output still waits for its end, as an answer does while it is written. */
let isLineOpen = false;

/** What the user sees: text as it comes, and lines, which never begin in the middle of another one. */
export const output = {
  /** Writes text for the user, wherever its lines end. */
  write(text: string): void {
    const shown = plain(text);
    if (shown === '') return;
    process.stdout.write(shown);
    isLineOpen = !shown.endsWith('\n');
  },

  /** Ends the line that `write` has left open, if there is one. */
  endLine(): void {
    if (isLineOpen) process.stdout.write('\n');
    isLineOpen = false;
  },

  /** Writes a line for the user. */
  say(line: string): void {
    output.endLine();
    process.stdout.write(`${plain(line)}\n`);
  },

  /** Writes a line about what is going on; pale on a terminal. */
  murmur(line: string): void {
    output.endLine();
    process.stdout.write(`${styleText('dim', plain(line), { stream: process.stdout })}\n`);
  },

  /** Writes a line that is no part of the output. */
  warn(line: string): void {
    // On a terminal the two streams share their lines.
    output.endLine();
    process.stderr.write(`assistant: ${plain(line).replace(/\s*\n\s*/g, ' ')}\n`);
  },
} as const;

/** Text of a model or a file must not steer the terminal; of a sequence cut in two, its control characters do. */
function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[^\P{Cc}\n\t]/gu, '');
}
