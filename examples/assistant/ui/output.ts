import { stripVTControlCharacters, styleText } from 'node:util';
import type { Surroundings } from '../surroundings.js';

/** What the user sees: text as it comes, and lines, which never begin in the middle of another one. */
export class Output {
  readonly #streams: Pick<Surroundings, 'stdout' | 'stderr'>;
  /** Whether the last line on standard output still waits for its end, as an answer does while it is written. */
  #isLineOpen = false;

  constructor(streams: Pick<Surroundings, 'stdout' | 'stderr'>) {
    this.#streams = streams;
  }

  /** Writes whole lines of the program's own, as they are. */
  print(lines: string): void {
    this.#streams.stdout.write(lines);
  }

  /** Writes text for the user, wherever its lines end. */
  write(text: string): void {
    const shown = plain(text);
    if (shown === '') return;
    this.#streams.stdout.write(shown);
    this.#isLineOpen = !shown.endsWith('\n');
  }

  /** Ends the line that `write` has left open, if there is one. */
  endLine(): void {
    if (this.#isLineOpen) this.#streams.stdout.write('\n');
    this.#isLineOpen = false;
  }

  /** Writes a line for the user. */
  say(line: string): void {
    this.endLine();
    this.#streams.stdout.write(`${plain(line)}\n`);
  }

  /** Writes a line about what is going on; pale on a terminal. */
  murmur(line: string): void {
    const { stdout } = this.#streams;
    this.endLine();
    stdout.write(`${styleText('dim', plain(line), { stream: stdout })}\n`);
  }

  /** Writes a line that is not a part of the output. */
  warn(line: string): void {
    // On a terminal the two streams share their lines.
    this.endLine();
    this.#streams.stderr.write(`assistant: ${plain(line).replace(/\s*\n\s*/g, ' ')}\n`);
  }
}

/** Text of a model or a file must not steer the terminal; of a sequence cut in two, its control characters do. */
function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[^\P{Cc}\n\t]/gu, '');
}
