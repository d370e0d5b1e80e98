import type { Wait } from './answer-fields.js';

/** A call, as the list of calls and the timeline of a run have it. */
export interface ShownCall {
  readonly tool: string;
  readonly status?: string;
  readonly ms?: number;
  /** As the model sent them. */
  readonly arguments: unknown;
  /** After the check. */
  readonly checked?: Readonly<Record<string, unknown>>;
  readonly repairs?: readonly string[];
  readonly removed?: readonly string[];
  readonly attempts?: number;
  readonly edited?: unknown;
  readonly answeredBy?: unknown;
  readonly forLLM?: string;
  readonly forUser?: string;
  readonly details?: unknown;
  readonly error?: unknown;
}

/** An entry of the timeline: of this process with times, of a store with durations alone. */
export type Span = {
  readonly begin?: number;
  readonly end?: number;
} & (RequestSpan | CallSpan | WaitSpan);

export interface RequestSpan {
  readonly kind: 'request';
  readonly iteration: number;
  readonly text: string;
  readonly usage?: Usage;
  readonly cost?: number;
  readonly finishReason?: string;
  readonly retries?: readonly string[];
}

export interface CallSpan extends ShownCall {
  readonly kind: 'call';
  readonly callId: string;
  /** In the list of calls. */
  readonly key?: string;
  readonly progress?: unknown;
}

export interface WaitSpan {
  readonly kind: 'wait';
  readonly tool: string;
  readonly callId?: string;
  readonly status?: string;
  readonly arguments?: unknown;
  readonly pending?: readonly (Wait & { readonly tool: string; readonly callId: string })[];
}

export type Usage = Readonly<Record<string, number>>;

export interface Message {
  readonly role: string;
  readonly content: unknown;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

export interface Run {
  readonly runId: string;
  readonly status: string;
  readonly begin: number;
  readonly title: string;
  readonly model?: string;
  readonly iterations?: number;
  readonly usage?: Usage;
  readonly cost?: number;
  /** The cost is in dollars, by the prices of the package. */
  readonly isEstimate?: boolean;
  readonly isStored: boolean;
  readonly content?: string;
  readonly error?: { readonly name: string; readonly message: string };
  readonly owner?: unknown;
  /** How many messages the run was given. */
  readonly given?: number;
  readonly messages: readonly Message[];
  readonly spans: readonly Span[];
}

/** The currency of a budget is that of its prices. */
export function costText(cost: number, isEstimate = false): string {
  const amount = cost.toLocaleString('en', { maximumSignificantDigits: 3 });
  return isEstimate ? `about $${amount}` : `cost ${amount}`;
}
