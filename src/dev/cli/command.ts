import { userInfo } from 'node:os';
import type { ParseArgsConfig, parseArgs } from 'node:util';
import { missingPackage } from '../../core/kernel/missing-package.js';
import { nodeUtil } from '../../core/kernel/node-module.js';
import { visibleLine } from '../../core/kernel/visible-text.js';

/** The environment of a command. */
export interface CommandEnvironment {
  /** The folder for relative paths on the command line. */
  readonly folder: string;
  out(text: string): void;
  /** Writes errors and progress; results go to `out`. */
  error(text: string): void;
  /** Whether to show progress, because a user is watching. */
  readonly isTerminal: boolean;
  /** The input; default: standard input. */
  readonly input?: NodeJS.ReadableStream;
  /** Ends commands that run until they are stopped. */
  readonly signal?: AbortSignal;
}

/** A subcommand; returns the exit code: 0, or 1 if a check has found faults. */
export type Command = (args: readonly string[], environment: CommandEnvironment) => Promise<number>;

/** A mistake of the user: one line and exit code 2, or 1 if files are at fault. */
export class UserFault extends Error {
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** An option with a value, and one without. */
export const STRING = { type: 'string' } as const;
export const FLAG = { type: 'boolean' } as const;

/** Options of a command line, as `parseArgs` takes them. */
type LineOptions = NonNullable<ParseArgsConfig['options']>;

/** The values of options that a user may give. */
export type LineValues<Options extends LineOptions> = ReturnType<
  typeof parseArgs<{ readonly options: Options }>
>['values'];

/** Parses the line of a command that takes only options. */
export function parseOptions<const Options extends LineOptions>(args: readonly string[], options: Options) {
  return nodeUtil().parseArgs({ args: [...args], options }).values;
}

/** Parses the line of a command that takes arguments, too. */
export function parseLine<const Options extends LineOptions>(args: readonly string[], options: Options) {
  return nodeUtil().parseArgs({ args: [...args], options, allowPositionals: true });
}

/** Reads the line of a command with exactly one argument besides its options. */
export function readLine<const Options extends LineOptions>(
  args: readonly string[],
  options: Options,
  usage: string,
): { readonly name: string; readonly values: LineValues<Options> } {
  const { values, positionals } = parseLine(args, options);
  const [name, second] = positionals;
  if (name === undefined || second !== undefined) throw new UserFault(usage);
  return { name, values };
}

/** Checks that an option has one of a few values. */
export function oneOfValues<Value extends string>(
  option: string,
  value: string | undefined,
  values: readonly Value[],
): Value | undefined {
  if (value === undefined || values.some((one) => one === value)) return value as Value | undefined;
  throw new UserFault(`${option} must be one of ${values.join(', ')}, not '${value}'`);
}

/** Calls back when the user or the system ends the process, or the command's signal is aborted. */
export function onEnd(
  { signal }: Pick<CommandEnvironment, 'signal'>,
  end: (reason: string) => void,
): () => void {
  const abort = () => end('aborted');
  signal?.addEventListener('abort', abort);
  for (const name of SIGNALS) process.once(name, end);
  return () => {
    for (const name of SIGNALS) process.off(name, end);
  };
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Makes something with `close` disposable, for `await using`. */
export function closing<Closable extends { close(): unknown }>(given: Closable): Closable & AsyncDisposable {
  return Object.assign(given, {
    [Symbol.asyncDispose]: async () => {
      await given.close();
    },
  });
}

/** The user of the operating system; in a container, the id of the user may have no name. */
export function localUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}

/** What to do about a package that is not installed; `undefined` for other errors. */
export function installAdvice(error: unknown): string | undefined {
  const name = missingPackage(error);
  return name === undefined ? undefined : `the package ${name} is not installed: npm install ${name}`;
}

/** A finding of a check. A problem contains its fix; advice does not make the check fail. */
export interface Diagnosis {
  readonly state: 'ok' | 'problem' | 'advice';
  readonly text: string;
}

export function ok(text: string): Diagnosis {
  return { state: 'ok', text };
}

export function problem(text: string): Diagnosis {
  return { state: 'problem', text };
}

export function advice(text: string): Diagnosis {
  return { state: 'advice', text };
}

/** Writes one line about the work of a command to standard error. */
export function report({ error }: Pick<CommandEnvironment, 'error'>, text: string): void {
  error(`toolwright: ${visibleLine(text)}\n`);
}

/** Prints findings, a line for each or as JSON; returns the exit code. */
export function printFindings(
  findings: readonly Diagnosis[],
  { out }: Pick<CommandEnvironment, 'out'>,
  isJson = false,
): 0 | 1 {
  const lines = findings.map(
    ({ state, text }) =>
      `${state.padEnd('problem'.length)}  ${visibleLine(text.replace(/\s*\n\s*/g, ' '))}\n`,
  );
  out(isJson ? `${JSON.stringify(findings)}\n` : lines.join(''));
  return findings.some(({ state }) => state === 'problem') ? 1 : 0;
}

/** Rows with aligned columns: the first `texts` columns are text, the others numbers. A cell wider than `widest` shifts its row. */
export function alignedRows(
  rows: readonly (readonly string[])[],
  { texts = Infinity, widest = Infinity }: { readonly texts?: number; readonly widest?: number } = {},
): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0).filter((length) => length <= widest)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column < texts ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}
