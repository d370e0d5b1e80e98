import type { RunStore } from '../../../core/contract/run-state.js';
import { checkOptions } from '../../../core/errors/author-fault.js';
import { FILLED_TEXT, FUNCTION, type OptionTable, required } from '../../../core/kernel/options.js';
import { expectThat } from '../conformance/expectations.js';
import type { ConformanceCase } from '../conformance/provider-conformance.js';

/** An empty store under test. */
export interface OpenedStore<Store extends RunStore = RunStore> {
  readonly store: Store;
  /** The same store through another connection. Without it, concurrent operations use `store` only. */
  readonly other?: Store;
  /**
   * Advances the store's time by this many milliseconds: sets its clock forward, or all stored times back. A case may
   * itself take up to a minute.
   */
  advance(ms: number): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** Long compared with a case, so that the store may use a real clock. */
export const LEASE_MS = 3_600_000;
export const MINUTE = 60_000;

/** Runs the work many times simultaneously, alternating between both connections of a store. */
export function atOnce<Store, Result>(
  count: number,
  stores: readonly [Store, Store],
  work: (store: Store, index: number) => Result | Promise<Result>,
): Promise<readonly Result[]> {
  const [one, other] = stores;
  return Promise.all(
    Array.from({ length: count }, async (_, index) => work(index % 2 === 0 ? one : other, index)),
  );
}

/** Expects an error of this name (`RunClaimed`), or any error if no name is given. */
export async function expectRefused(what: string, work: () => unknown, name?: string): Promise<void> {
  const error = await (async () => work())().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expectThat(error !== undefined, `${what} is not refused`);
  if (name !== undefined)
    expectThat((error as Error).name === name, `the error for ${what} is ${error}, but should be ${name}`);
}

/** Text that databases may misinterpret: quotes, a NUL, a lone surrogate, characters of other planes. */
export const ODD_TEXT = `'";-- \u0000 \ud83d \u{1f600} \u2028 %s $1 \\`;

/** Names that databases and objects may confuse. */
export const ODD_NAMES = [
  ...['c', 'C', 'c ', '__proto__', 'constructor', '1', '01', "a'b", 'é', 'e\u0301', '\\', '👩‍🚀'],
];

/** The result of a suite's `open`, which may need closing. */
interface Closable {
  close?(): void | Promise<void>;
}

/** Cases before they are bound to an opened subject, by title: the tested method and its behaviour. */
export type OpenedCases<Opened> = Readonly<Record<string, (opened: Opened) => Promise<void>>>;

/** The same cases for the opened subject of a suite. They do nothing if it lacks their part. */
export function casesOf<Opened, Subject>(
  cases: OpenedCases<Subject>,
  subjectOf: (opened: Opened) => Subject | undefined,
): OpenedCases<Opened> {
  const bound = Object.entries(cases).map(([title, run]) => [
    title,
    async (opened: Opened) => {
      const subject = subjectOf(opened);
      if (subject !== undefined) await run(subject);
    },
  ]);
  return Object.fromEntries(bound);
}

/** The subject of a suite, and how it is opened for each case. */
interface Suite<Opened> {
  readonly name: string;
  readonly open: () => Opened | Promise<Opened>;
}

/** The rules of a suite's options; `example` is what `open` returns. */
export function suiteRules(example: string) {
  return { name: required(FILLED_TEXT), open: required({ ...FUNCTION, fix: `() => (${example})` }) };
}

/** Cases for any test runner; each opens its own subject and closes it afterwards. */
export function openedCases<Opened extends Closable, Options extends Suite<Opened>>(
  options: Options & Suite<Opened>,
  table: OptionTable,
  casesFor: (options: Options) => OpenedCases<Opened>,
): readonly ConformanceCase[] {
  checkOptions(options, table);
  const { name, open } = options;
  return Object.entries(casesFor(options)).map(([title, run]) => ({
    title: `${name}.${title}`,
    run: async () => {
      const opened = await open();
      try {
        await run(opened);
      } finally {
        await opened.close?.();
      }
    },
  }));
}
