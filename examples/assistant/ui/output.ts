import { stripVTControlCharacters, styleText } from 'node:util';
import type { Surroundings } from '../surroundings.js';

/** The output for the user: streamed text, and lines, which always start at the beginning of a line. */
export class Output {
  readonly #streams: Pick<Surroundings, 'stdout' | 'stderr'>;
  /** Whether the last line on standard output is unfinished, as while an answer is streamed. */
  #isLineOpen = false;

  constructor(streams: Pick<Surroundings, 'stdout' | 'stderr'>) {
    this.#streams = streams;
  }

  /** Writes complete lines of the program itself, unchanged. */
  print(lines: string): void {
    this.#streams.stdout.write(lines);
  }

  /** Writes text for the user, which may end in the middle of a line. */
  write(text: string): void {
    const shown = plain(text);
    if (shown === '') return;
    this.#streams.stdout.write(shown);
    this.#isLineOpen = !shown.endsWith('\n');
  }

  /** Ends the line that `write` left unfinished, if any. */
  endLine(): void {
    if (this.#isLineOpen) this.#streams.stdout.write('\n');
    this.#isLineOpen = false;
  }

  /** Writes a line for the user. */
  say(line: string): void {
    this.endLine();
    this.#streams.stdout.write(`${plain(line)}\n`);
  }

  /** Writes a line about the progress; dimmed on a terminal. */
  murmur(line: string): void {
    const { stdout } = this.#streams;
    this.endLine();
    stdout.write(`${styleText('dim', plain(line), { stream: stdout })}\n`);
  }

  /** Writes a line to standard error. */
  warn(line: string): void {
    // On a terminal, both streams write to the same lines.
    this.endLine();
    this.#streams.stderr.write(`assistant: ${plain(line).replace(/\s*\n\s*/g, ' ')}\n`);
  }
}

/** Removes control characters, so that text of a model or a file cannot control the terminal. */
function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[^\P{Cc}\n\t]/gu, '');
}
