import type { Answer, PendingCall } from '../contract/call.js';
import { canonicalJson, isRecord } from '../kernel/json.js';
import { misspeltName } from '../kernel/nearest-name.js';
import { HttpFault } from './chat-request.js';
import { type Asking, shownPendingId } from './shown-calls.js';

type Fields = Readonly<Record<string, unknown>>;

/** What a client says of pending calls. */
interface ClientWord {
  readonly parts: readonly Fields[];
  /** Arguments in place of those that it was asked about, by the id of the approval. */
  readonly edits?: Fields;
  /** For which later calls a yes is to stand, by the id of the approval. */
  readonly remember?: Fields;
  /** Answers to questions, by their ids: for calls that ask several things at once. */
  readonly outputs?: Fields;
}

/**
 * The answers that the parts of a client's message give to what is pending. Everything else in them is the client's
 * word, and counts for nothing; so do two answers to one approval that are not the same, and an output for a call
 * that asks several things at once without their ids.
 */
export function clientAnswers(word: ClientWord, asking: Asking): readonly Answer[] {
  const { outputs = {} } = word;
  return asking.pending.flatMap((wait) => {
    if (Object.hasOwn(outputs, wait.id) && isOutput(wait)) return [outputAnswer(wait, outputs[wait.id])];
    const given = partsFor(wait, word, asking).flatMap((part) => answerIn(part, wait) ?? []);
    const [answer] = given;
    if (answer === undefined || given.some((other) => canonicalJson(other) !== canonicalJson(answer)))
      return [];
    return isMeant(wait, word, asking) ? [withMore(answer, word)] : [];
  });
}

/** Whether a call that asks several things has one of them answered without saying which. */
export function asksSeveral({ pending, ...place }: Asking): boolean {
  const ids = pending.filter(isOutput).map((wait) => shownPendingId(place, wait));
  return new Set(ids).size < ids.length;
}

/** What clients say of the call that waits, or of the one that its agent runs in. */
function partsFor(wait: PendingCall, { parts }: ClientWord, asking: Asking): readonly Fields[] {
  // Readers of plain events know the call by the id that the events have.
  const ids: readonly unknown[] = [shownPendingId(asking, wait), wait.path?.[0]?.callId ?? wait.callId];
  return parts.filter(
    ({ type, toolCallId }) =>
      typeof type === 'string' && /^(?:tool-|dynamic-tool$)/.test(type) && ids.includes(toolCallId),
  );
}

/** Whether what is said of a call is for this one thing that it waits for, and not for another one. */
function isMeant(wait: PendingCall, { outputs = {} }: ClientWord, asking: Asking): boolean {
  if (!isOutput(wait)) return true;
  const id = shownPendingId(asking, wait);
  const rivals = asking.pending.filter((other) => isOutput(other) && shownPendingId(asking, other) === id);
  if (rivals.length === 1) return true;
  if (rivals.some((rival) => Object.hasOwn(outputs, rival.id))) return false;
  // Calls that the client executes within an agent have no ids for it: they are answered one after the other.
  return rivals.every(({ kind }) => kind === 'client') && rivals[0] === wait;
}

function isOutput({ kind }: PendingCall): boolean {
  return kind === 'client' || kind === 'question';
}

/** What is wrong in them is refused with the answer. */
function withMore(answer: Answer, { edits = {}, remember = {} }: ClientWord): Answer {
  const { id } = answer;
  const edited = Object.hasOwn(edits, id) ? { arguments: edits[id] } : {};
  const stands = Object.hasOwn(remember, id) ? { remember: remember[id] } : {};
  return { ...answer, ...edited, ...stands } as Answer;
}

function answerIn(part: Fields, wait: PendingCall): Answer | undefined {
  switch (wait.kind) {
    case 'approval':
      return approvalIn(part, wait);
    case 'client':
    case 'question':
      return outputIn(part, wait);
    // What came of a call whose process died is not the client's to say.
    case 'outcome':
      return undefined;
  }
}

function approvalIn({ state, approval }: Fields, wait: PendingCall): Answer | undefined {
  if (state !== 'approval-responded' || !isRecord(approval)) return undefined;
  const { id, approved, reason } = approval;
  if (id !== wait.id || typeof approved !== 'boolean') return undefined;
  checkApprovalNames(approval);
  return { id: wait.id, approved, ...(typeof reason === 'string' ? { reason } : {}) };
}

function outputIn({ state, output, errorText }: Fields, wait: PendingCall): Answer | undefined {
  if (state === 'output-error')
    return { id: wait.id, approved: false, reason: typeof errorText === 'string' ? errorText : '' };
  return state === 'output-available' ? outputAnswer(wait, output) : undefined;
}

function outputAnswer({ id, kind }: PendingCall, output: unknown): Answer {
  const given = output ?? null;
  return kind === 'client' ? { id, result: given } : { id, value: given };
}

/** Names that a client may give to something, and those that it may not, with what is meant by them. */
interface KnownNames {
  /** Where the names stand, for whoever has mistaken one. */
  readonly place: string;
  readonly names: readonly string[];
  readonly meant: Readonly<Record<string, string>>;
}

const EDITS = '`edits` of the body, by the id of the approval';
const REMEMBER = '`remember` of the body, by the id of the approval';

const BODY: KnownNames = {
  place: 'the body',
  names: ['edits', 'remember', 'outputs'],
  meant: { edited: EDITS, editedArgs: EDITS, editedArguments: EDITS },
};

const APPROVAL: KnownNames = {
  place: '`approval` of a part',
  names: ['id', 'approved', 'reason'],
  meant: { edits: EDITS, editedArgs: EDITS, editedArguments: EDITS, arguments: EDITS, remember: REMEMBER },
};

/** Applications send fields of their own in the body: only an object under a name like one of ours is a slip. */
export function checkBodyNames(body: Fields): void {
  checkNames(objectsOf(body), BODY);
}

function checkApprovalNames(approval: Fields): void {
  checkNames(approval, APPROVAL);
}

export function checkNames(given: Fields, { place, names, meant }: KnownNames): void {
  const known = [...names, ...Object.keys(meant)];
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || names.includes(name)) continue;
    const near = Object.hasOwn(meant, name) ? name : misspeltName(name, known);
    if (near === undefined) continue;
    const wanted = Object.hasOwn(meant, near) ? meant[near] : `\`${near}\``;
    throw new HttpFault(
      422,
      `There is no ${JSON.stringify(name)} in ${place}; did you mean ${wanted}? Nothing was done.`,
    );
  }
}

export function objectsOf(given: Fields): Fields {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => isRecord(value)));
}
