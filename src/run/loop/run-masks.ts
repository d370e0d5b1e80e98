import type { Hooks } from '../../core/contract/hooks.js';
import type { Message } from '../../core/contract/llm-provider.js';

/** A part of a text: a value to hide, or a text in the form of a mask. */
export interface Found {
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** The name of the pattern that matched. */
  readonly name?: string;
  /** The mask in its standard spelling: `[email 1]`, or `[email]`. */
  readonly mask?: string;
}

/** How the words of a model are read outside of its run. */
export interface MaskReading {
  /** The history of its run: masks derive from it. */
  readonly history: readonly Message[];
  /** The masks of the run that reads the words; `undefined` if it is not known. */
  readonly readers: readonly RunMasks[] | undefined;
}

/** The masks of a hook that are reversible within each run, and differ between runs. */
export interface RunMasks {
  find(text: string): readonly Found[];
  /**
   * A message, or a part of one, with the values that the reader masks again. Other masks that the reader would take
   * for its own lose their number.
   */
  revealed<Words>(words: Words, reading: MaskReading): Words;
}

/** The property of a hook with its masks, also for another copy of this package. */
export const MASKS: unique symbol = Symbol.for('toolwright.Masks');

/** Words of a run as they are read outside of it. */
export type Reveal = <Words>(words: Words) => Words;

/** A run with its hooks. */
export interface HookedRun {
  readonly tools: { readonly hooks: readonly Hooks[] };
  readonly config: { readonly hooks?: readonly Hooks[] | undefined };
}

/** `undefined` if there is nothing to reveal, or the reader has no masks. */
export function revealing(
  run: HookedRun,
  history: readonly Message[],
  reader: HookedRun | undefined,
): Reveal | undefined {
  const masks = masksOf(run);
  const readers = reader && masksOf(reader);
  if (masks.length === 0 || readers?.length === 0) return undefined;
  return (words) => masks.reduce((said, one) => one.revealed(said, { history, readers }), words);
}

function masksOf({ tools, config }: HookedRun): readonly RunMasks[] {
  const hooks: readonly (Hooks & { readonly [MASKS]?: RunMasks })[] = tools.hooks.concat(config.hooks ?? []);
  return hooks.flatMap((hook) => hook[MASKS] ?? []);
}
