import type { FinishReason, LLMProvider, LLMRequest, Usage } from '../../contract/llm-provider.js';

/** A call that a model is to make; `arguments` is the text that it writes, not always JSON. */
export interface ModelCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** What a model is to think. */
export interface ModelReasoning {
  /** What people may read of it. */
  readonly text: string;
  /** What only its maker understands and wants back as it is: a signature, encrypted reasoning. */
  readonly sealed: string;
}

/** What a model is to reply. */
export interface ModelReply {
  readonly text: string;
  readonly reasoning?: ModelReasoning;
  readonly calls: readonly ModelCall[];
  readonly finishReason: Exclude<FinishReason, 'other'>;
  readonly usage: Required<Omit<Usage, 'raw'>>;
  /** The pieces in which a stream is to bring the text, the reasoning, or the arguments of a call. */
  deltas(text: string): readonly string[];
}

/** What a server is to refuse a request with. */
export interface ModelFailure {
  readonly status: number;
  readonly message: string;
  /** Seconds of its header `retry-after`. */
  readonly retryAfter?: number;
}

/** What can be sent in pieces: bytes, a text, the parts of a stream. */
export interface Sliceable<Self> {
  readonly length: number;
  slice(from: number, to: number): Self;
}

/** What a model does with a request. */
export type ModelTurn =
  | {
      readonly kind: 'reply';
      readonly reply: ModelReply;
      /**
       * Gives what to send of the reply, piece by piece. It may wait for ever, as a model does that is silent, and it
       * may throw, as a connection does that is lost.
       */
      transmit<Units extends Sliceable<Units>>(units: Units): AsyncIterable<Units>;
    }
  | { readonly kind: 'failure'; readonly failure: ModelFailure };

/** The words to ask with, for a model that cannot be told what to say. */
export type ModelPrompt = Pick<LLMRequest, 'messages'>;

/** A provider, and behind it a model that says what it is told: a server on loopback, or an object. */
export interface ProviderBackend {
  /** Without retries of its own. */
  readonly provider: LLMProvider;
  readonly model: string;
  /** `options` of each request; default: none. */
  readonly options?: LLMRequest['options'];
  /** What the model was sent, a value for each request: the body as JSON, the prompt. */
  readonly sent?: readonly unknown[];
  /** Says what the model does with all requests from now on. */
  script(turn: ModelTurn): ModelPrompt | undefined;
  close?(): Promise<void> | void;
}

/** How a reply travels. */
export interface Route {
  /** The places at which it is cut into pieces; default: none. */
  readonly cuts?: (length: number) => readonly number[];
  /** Where it stays, and what happens there. */
  readonly stop?: {
    readonly at: (length: number) => number;
    /** Throws where the connection is lost; settles when the rest may follow. */
    readonly wait: () => Promise<void>;
  };
}

/** A turn, and when the reply has come to where it stays. */
interface RoutedTurn {
  readonly turn: ModelTurn;
  readonly reached: Promise<void>;
}

/** A turn whose reply travels by a route. */
export function routedTurn(reply: ModelReply, route: Route): RoutedTurn {
  const reached = Promise.withResolvers<void>();
  async function* transmit<Units extends Sliceable<Units>>(units: Units): AsyncGenerator<Units> {
    const { cuts = () => [], stop } = route;
    const { length } = units;
    const places = cuts(length);
    const end = stop?.at(length) ?? length;
    try {
      yield* piecesOf(units, [...places.filter((place) => place < end), end]);
    } finally {
      reached.resolve();
    }
    await stop?.wait();
    yield* piecesOf(units, [end, ...places.filter((place) => place > end), length], end);
  }
  return { turn: { kind: 'reply', reply, transmit }, reached: reached.promise };
}

function* piecesOf<Units extends Sliceable<Units>>(
  units: Units,
  places: readonly number[],
  begin = 0,
): Generator<Units> {
  let from = begin;
  for (const place of places) {
    if (place <= from) continue;
    yield units.slice(from, place);
    from = place;
  }
}

/** A connection that is lost, in the words of `fetch`. */
export function lostConnection(): Error {
  const cause = Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' });
  return new TypeError('terminated', { cause });
}
