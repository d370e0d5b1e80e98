import type { Answer, PendingCall } from '../contract/call.js';
import { isRecord } from '../kernel/json.js';
import { type Asking, shownPendingId } from './shown-calls.js';

type Fields = Readonly<Record<string, unknown>>;

/** What a client says of pending calls. */
interface ClientWord {
  readonly parts: readonly Fields[];
  /** Arguments in place of those that it was asked about, by the id of the approval. */
  readonly edits?: Fields;
  /** For which later calls a yes is to stand, by the id of the approval. */
  readonly remember?: Fields;
}

/**
 * The answers that the parts of a client's message give to what is pending. Everything else in them is the client's
 * word, and counts for nothing.
 */
export function clientAnswers(word: ClientWord, asking: Asking): readonly Answer[] {
  const tools = word.parts.filter(({ type }) => /^(?:tool-|dynamic-tool$)/.test(String(type)));
  return asking.pending.flatMap((wait) => {
    // Readers of plain events know the call by the id that the events have.
    const ids: readonly unknown[] = [shownPendingId(asking, wait), wait.path?.[0]?.callId ?? wait.callId];
    for (const part of tools) {
      const answer = ids.includes(part.toolCallId) ? answerIn(part, wait) : undefined;
      if (answer !== undefined) return [withMore(answer, word)];
    }
    return [];
  });
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
  return { id: wait.id, approved, ...(typeof reason === 'string' ? { reason } : {}) };
}

function outputIn({ state, output, errorText }: Fields, { id, kind }: PendingCall): Answer | undefined {
  if (state === 'output-error') return { id, approved: false, reason: String(errorText ?? '') };
  if (state !== 'output-available') return undefined;
  const given = output ?? null;
  return kind === 'client' ? { id, result: given } : { id, value: given };
}
