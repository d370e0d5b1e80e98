import type { JsonObject, JsonSchema } from './json-schema.js';

/**
 * Why a call waits: `client` (the caller's side executes it), `approval` (somebody must say yes first),
 * `question` (the tool asked the user something).
 */
export type PendingKind = 'client' | 'approval' | 'question';

/** Something that a suspended run waits for. A call has several only where its tool asked several questions. */
export interface PendingCall {
  /** What the answer names. It is a digest of run, call, tool and arguments, so that it fits nothing else. */
  readonly id: string;
  /** Id of the call in the assistant message. */
  readonly callId: string;
  readonly kind: PendingKind;
  readonly tool: string;
  /** As the tool would get them: checked, mended, defaults filled in; JSON. */
  readonly arguments: JsonObject;
  /** Of a question: what is asked. */
  readonly message?: string;
  /** Of a question: what the answer's value must fit. */
  readonly schema?: JsonSchema;
}

/** What the caller's side made of a call that it executes: any JSON value, or a serialised `ToolResult`. */
export interface ClientAnswer {
  readonly id: string;
  readonly result: unknown;
}

/** A yes or a no. A no answers any kind of pending call; its reason becomes the call's result. */
export interface ApprovalAnswer {
  readonly id: string;
  readonly approved: boolean;
  readonly reason?: string;
}

/** The user's answer to a question; checked against its schema. */
export interface QuestionAnswer {
  readonly id: string;
  readonly value: unknown;
}

/** An answer to one {@link PendingCall}. */
export type Answer = ClientAnswer | ApprovalAnswer | QuestionAnswer;

/** One thing that a suspended call waits for, before a run gives it an id. */
export interface Wait {
  readonly kind: PendingKind;
  /** Of a question: the how-manieth of its call, from 0. Otherwise 0. */
  readonly index: number;
  readonly message?: string;
  readonly schema?: JsonSchema;
}

/** A question that was answered, and where in its call it was asked. */
export interface AnsweredQuestion {
  readonly index: number;
  readonly message: string;
  readonly value: unknown;
}

/** Who gave an answer; recorded apart from on whose behalf the run goes on. */
export interface GivenAnswer {
  readonly kind: PendingKind;
  /** Of a question: the how-manieth of its call, from 0. Otherwise 0. */
  readonly index: number;
  /** Any JSON, as the resume gave it. */
  readonly answeredBy: unknown;
}

/**
 * What is known of a call that was suspended; plain JSON. With it the call is made again: answered questions
 * and finished `context.once` work replay, everything else of the method repeats.
 */
export interface CallJournal {
  /** What all of this was said about: it counts for no other arguments. */
  readonly arguments: JsonObject;
  readonly approved?: true;
  /** Somebody said no. */
  readonly refused?: { readonly reason?: string };
  /** What the client's side made of the call. */
  readonly result?: { readonly value: unknown };
  readonly answers: readonly AnsweredQuestion[];
  /** Who gave the answers so far, where that was said. */
  readonly given?: readonly GivenAnswer[];
  /** Values of finished `context.once` work, by key; without `value` where there was none. */
  readonly once: readonly { readonly key: string; readonly value?: unknown }[];
}

/** What a suspended call waits for, and what is to be given back when it is made again. */
export interface Suspension {
  readonly waits: readonly Wait[];
  readonly journal: CallJournal;
}
