import type { ConformanceCase } from '../conformance/provider-conformance.js';

/** What databases take for something else: quotes, a NUL, half a character, other planes. */
export const ODD_TEXT = `'";-- \u0000 \ud83d \u{1f600} \u2028 %s $1 \\`;

/** What `open` of a suite gives, as far as it has to be ended. */
interface Closable {
  close?(): void | Promise<void>;
}

/** A case before it has something to try. */
export interface OpenedCase<Opened> {
  /** The method that it is about, and what that does. */
  readonly title: string;
  run(opened: Opened): Promise<void>;
}

/** What a suite is about, and how it is opened for each case anew. */
interface Suite<Opened> {
  readonly name: string;
  readonly open: () => Opened | Promise<Opened>;
}

/** Cases for any test runner, each with something of its own that is closed behind it. */
export function openedCases<Opened extends Closable>(
  { name, open }: Suite<Opened>,
  drafts: readonly OpenedCase<Opened>[],
): readonly ConformanceCase[] {
  return drafts.map(({ title, run }) => ({
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
