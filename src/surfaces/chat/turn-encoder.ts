import type { PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import { isRecord, withoutUndefined } from '../../core/kernel/json.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';

/** Where a call is made; without a turn, in a run that stands alone. */
interface CallPlace {
  readonly turn?: string;
  readonly iteration?: unknown;
}

/** The place of what a turn does before its first step. */
function placeOfTurn(number: unknown): CallPlace {
  return typeof number === 'number' ? { turn: `turn-${number}` } : {};
}

/**
 * The id by which clients know a call. Models use ids again, from step to step and from turn to turn, and clients
 * take two calls of one id for one. The place is told first, so that no id of a model can look like another's.
 */
export function shownCallId({ turn, iteration }: CallPlace, callId: string): string {
  return turn === undefined ? callId : `${turn}.${iteration}.${callId}`;
}

/** What waits, and in which turn and step. */
export type Asking = Pick<ConversationView, 'pending' | 'turn' | 'iteration'>;

/** The id by which clients know a call that waits. */
export function shownPendingId(
  { turn, iteration }: Omit<Asking, 'pending'>,
  { callId, path }: PendingCall,
): string {
  // Clients know of the call that an agent runs in, and not of those of the agent.
  return shownCallId({ ...placeOfTurn(turn?.number), iteration }, path?.[0]?.callId ?? callId);
}

/** What the approver of a call sees beside the call itself. */
export function approvalDescriptor(wait: PendingCall | JsonObject): JsonObject | undefined {
  const { message, title, description, risk, decisions, mayRemember, approver, expiresAt } =
    wait as PendingCall;
  const fields = { message, title, description, risk, decisions, mayRemember, approver, expiresAt };
  const given = withoutUndefined(fields);
  return Object.keys(given).length === 0 ? undefined : (given as unknown as JsonObject);
}

/** Words for the error of a turn that failed. */
export type DescribeTurnError = (error: JsonObject) => string;

/** Results of calls that a step or a turn leaves behind. */
export const NOT_MADE = 'This call was not made.';
export const NOT_ENDED = 'The turn ended before this call did.';

export function userText(result: unknown): string {
  const { silent, forUser, forLLM } = isRecord(result) ? result : {};
  return silent ? '' : String(forUser || (forLLM ?? ''));
}

/** A call of the current step, or of the one that was suspended. */
export interface ShownCall {
  /** The id by which clients know it. */
  readonly toolCallId: string;
  /** `input`: its arguments are being written; `waiting`: for an answer. */
  readonly phase: 'input' | 'running' | 'waiting' | 'ended';
}

/**
 * Encodes the events of a turn for a front-end, one by one from its `turn-start` on. The same events make the same
 * chunks, in every process.
 */
export abstract class TurnEncoder<Chunk, Call extends ShownCall> {
  protected readonly describeError: DescribeTurnError;
  /** By the ids that the model gave them. */
  protected readonly calls = new Map<string, Call>();
  protected place: CallPlace = {};
  protected step: { readonly iteration: unknown; isOpen: boolean } | undefined;

  constructor(describeError: DescribeTurnError) {
    this.describeError = describeError;
  }

  encode(event: JsonObject): Chunk[] {
    switch (event.type) {
      case 'turn-start':
        return this.beginTurn(event);
      case 'user-message':
        return [...this.write('text', String(event.text)), ...this.endPart()];
      case 'run-start':
        return this.step?.isOpen && !this.#hasCalls() ? this.dropStep() : [];
      case 'step-start': {
        // A repeated request begins its step anew: what was shown of it is taken back, even a complete reply.
        const { iteration } = event;
        const { step } = this;
        if (step !== undefined && step.iteration === iteration && (step.isOpen || !this.#hasCalls())) {
          const begun = step.isOpen ? [] : this.reopenStep();
          step.isOpen = true;
          return [...begun, ...this.dropStep()];
        }
        const ended = this.endStep();
        this.calls.clear();
        this.place = { ...this.place, iteration };
        this.step = { iteration, isOpen: true };
        return [...ended, ...this.beginStep()];
      }
      case 'request-retry':
        return this.dropStep();
      case 'text-delta':
        return this.write('text', String(event.text));
      case 'reasoning-delta':
        return this.write('reasoning', String(event.text));
      case 'attachment':
        return this.attach((event.attachment ?? {}) as JsonObject);
      case 'reply-end':
        return this.endPart();
      case 'step-end':
        return this.endStep();
      case 'turn-suspended':
      case 'turn-end':
        return this.endTurn(event);
      default:
        return this.#encodeCall(event, String(event.callId));
    }
  }

  #encodeCall(event: JsonObject, callId: string): Chunk[] {
    const call = this.calls.get(callId);
    switch (event.type) {
      case 'call-input-start':
        return call === undefined ? [...this.endPart(), ...this.beginInput(callId, String(event.tool))] : [];
      case 'call-input-delta':
        return call?.phase === 'input' ? this.writeInput(call, String(event.text)) : [];
      case 'call-start':
        return this.beginCall(callId, event, event.arguments);
      case 'call-progress':
        return this.progress(callId, event);
      case 'call-event':
        return this.agentEvent(callId, event);
      case 'call-suspended':
        return this.suspendCall(callId, event);
      case 'call-end':
        return this.endCall(callId, event);
      default:
        return [];
    }
  }

  protected beginTurn({ turn }: JsonObject): Chunk[] {
    this.place = placeOfTurn(isRecord(turn) ? turn.number : undefined);
    return [];
  }

  protected endStep(): Chunk[] {
    const ended = this.endPart();
    if (!this.step?.isOpen) return ended;
    this.step.isOpen = false;
    return [...ended, ...this.closeCalls(({ phase }) => phase === 'input'), this.stepEnd()];
  }

  /** Ends calls that will get no result any more. */
  protected closeCalls(isLeft: (call: Call) => boolean): Chunk[] {
    const left = [...this.calls].filter(([, call]) => isLeft(call));
    for (const [id, call] of left) this.calls.set(id, { ...call, phase: 'ended' });
    return left.flatMap(([, call]) => this.closeCall(call));
  }

  protected shownId(callId: string): string {
    return this.calls.get(callId)?.toolCallId ?? shownCallId(this.place, callId);
  }

  #hasCalls(): boolean {
    return [...this.calls.values()].some(({ phase }) => phase !== 'input');
  }

  protected abstract beginStep(): Chunk[];
  protected abstract reopenStep(): Chunk[];
  /** Takes back what was shown of the step. */
  protected abstract dropStep(): Chunk[];
  protected abstract stepEnd(): Chunk;
  protected abstract write(kind: 'text' | 'reasoning', delta: string): Chunk[];
  /** The text or reasoning that is being written is complete. */
  protected abstract endPart(): Chunk[];
  protected abstract attach(attachment: JsonObject): Chunk[];
  protected abstract beginInput(callId: string, tool: string): Chunk[];
  protected abstract writeInput(call: Call, delta: string): Chunk[];
  /** Also a call that goes on after its answer was shown before. */
  protected abstract beginCall(callId: string, event: JsonObject, input: unknown): Chunk[];
  protected abstract progress(callId: string, event: JsonObject): Chunk[];
  /** What the agent within a call does while it does it: its result is the output of the call. */
  protected abstract agentEvent(callId: string, event: JsonObject): Chunk[];
  protected abstract suspendCall(callId: string, event: JsonObject): Chunk[];
  protected abstract endCall(callId: string, event: JsonObject): Chunk[];
  protected abstract closeCall(call: Call): Chunk[];
  protected abstract endTurn(event: JsonObject): Chunk[];
}
