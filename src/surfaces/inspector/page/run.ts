import type { Wait } from './answer-fields.js';

/** The fields of a call in the list of calls and in a timeline. */
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

/** An entry of the timeline. Stored runs have durations but no times. */
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
  /** The key in the list of calls. */
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
  /** The cost is in dollars, by list prices. */
  readonly isEstimate?: boolean;
  readonly isStored: boolean;
  readonly content?: string;
  readonly error?: { readonly name: string; readonly message: string };
  readonly owner?: unknown;
  /** The number of messages that the run started with. */
  readonly given?: number;
  readonly messages: readonly Message[];
  readonly spans: readonly Span[];
}

/** A cost that is not an estimate is in the currency of the budget. */
export function costText(cost: number, isEstimate = false): string {
  const amount = cost.toLocaleString('en', { maximumSignificantDigits: 3 });
  return isEstimate ? `about $${amount}` : `cost ${amount}`;
}
