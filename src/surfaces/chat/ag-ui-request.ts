import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { Remember } from '../../core/contract/standing-approvals.js';
import { canonicalJson, isRecord } from '../../core/kernel/json.js';
import type { ConversationView } from '../../run/conversation/stored-turns.js';
import type { AgUiMessage } from './ag-ui-encoder.js';
import { checkId, type Decision, HttpFault } from './chat-request.js';
import { type Asking, shownPendingId } from './turn-encoder.js';
import { type AskedChat, hasAnswers } from './turn-readings.js';
import { checkNames, objectsOf, turnOfMessage } from './ui-message-request.js';
import {
  checkNewMessage,
  digestOf,
  messageIdOf,
  messageKey,
  type SentPart,
  userContent,
} from './user-messages.js';

type Fields = Readonly<Record<string, unknown>>;

/** The used parts of a `RunAgentInput`. `tools`, `context` and the rest are not trusted, and ignored. */
interface AgUiInput {
  readonly threadId: string;
  readonly runId: string;
  readonly messages: readonly Fields[];
  /** Returned in snapshots, otherwise unused. */
  readonly state: unknown;
  readonly resume: readonly ResumeEntry[];
}

interface ResumeEntry {
  readonly interruptId: string;
  readonly status: 'resolved' | 'cancelled';
  readonly payload?: unknown;
}

export function readAgUiInput(body: unknown): AgUiInput {
  if (!isRecord(body)) throw new HttpFault(400, 'The body must be an object.');
  const { threadId, runId, messages, state, resume = [] } = body;
  if (!Array.isArray(messages)) throw new HttpFault(400, 'messages must be a list.');
  if (!Array.isArray(resume) || !resume.every(isResumeEntry))
    throw new HttpFault(400, 'resume must be a list of { interruptId, status, payload }.');
  if (resume.length > 0) checkNames(objectsOf(body), INPUT);
  return {
    threadId: checkId(threadId),
    runId: checkId(runId),
    messages: messages.filter(isRecord),
    state,
    resume,
  };
}

function isResumeEntry(entry: unknown): entry is ResumeEntry {
  if (!isRecord(entry) || typeof entry.interruptId !== 'string') return false;
  return entry.status === 'resolved' || entry.status === 'cancelled';
}

/** Decides what to do with an input. Throws an {@link HttpFault} that refuses the run. */
export async function decideAgUi(input: AgUiInput, asked: AskedChat): Promise<Decision> {
  const { view } = asked;
  const key = `resume ${await digestOf([input.resume, outputsIn(input)])}`;
  if (view?.status === 'suspended') {
    const answers = agUiAnswersIn(input, view);
    if (answers.length > 0) return { kind: 'answers', key, answers };
    throw new HttpFault(
      409,
      'The thread waits: the run must carry `resume`, or the results of its tool calls.',
      { isPrompt: true },
    );
  }
  if (input.resume.length > 0) {
    // The same answers were sent before: report their outcome again.
    if (view !== undefined && (await hasAnswers(asked.source, { key, view })))
      return { kind: 'again', of: 'answers', key };
    throw new HttpFault(409, 'Nothing waits for these answers.');
  }
  return prompt(input, view);
}

/** Answers to all questions and approvals, and the results of calls that the client executes. */
export function agUiAnswersIn({ resume, messages }: AgUiInput, asking: Asking): readonly Answer[] {
  const interrupts = asking.pending.filter(({ kind }) => kind === 'approval' || kind === 'question');
  const byId = new Map(interrupts.map((wait) => [wait.id, wait]));
  const resumed = new Map(resume.map((entry) => [entry.interruptId, entry]));
  if (resumed.size < resume.length) throw new HttpFault(409, '`resume` has an interrupt twice.');
  const foreign = [...resumed.keys()].filter((id) => !byId.has(id));
  if (foreign.length > 0) throw new HttpFault(409, `Nothing waits for ${foreign.join(', ')}.`);
  const missing = interrupts.filter(({ id }) => !resumed.has(id)).map(({ id }) => id);
  if (missing.length > 0)
    throw new HttpFault(409, `\`resume\` must cover ${missing.join(', ')}, too.`, {
      isPrompt: resume.length === 0,
    });
  const given = interrupts.map((wait) => answerOf(resumed.get(wait.id) as ResumeEntry, wait));
  return [...given, ...outputsOf(messages, asking)];
}

function answerOf(entry: ResumeEntry, wait: PendingCall): Answer {
  const { status, payload } = entry;
  const { id, kind } = wait;
  if (status === 'cancelled') return { id, approved: false, reason: 'It was cancelled.' };
  if (kind === 'question') {
    if (payload === undefined) throw new HttpFault(422, `The answer to ${id} has no payload.`);
    return { id, value: payload };
  }
  if (!isRecord(payload) || typeof payload.approved !== 'boolean')
    throw new HttpFault(422, `The answer to ${id} must be { approved: true } or { approved: false }.`);
  checkNames({ ...entry }, RESUME_ENTRY);
  // Clients may send the unchanged arguments back.
  const asked = canonicalJson(wait.arguments);
  const changed = Object.entries(payload).filter(
    ([name, value]) => !(/^arg(?:ument)?s$/.test(name) && canonicalJson(value) === asked),
  );
  checkNames(Object.fromEntries(changed), PAYLOAD);
  const { approved, reason, editedArgs, remember } = payload;
  const edited = editedArgs === undefined ? {} : { arguments: editedArgs as JsonObject };
  const stands = remember === undefined ? {} : { remember: remember as Remember };
  return { id, approved, ...edited, ...stands, ...(typeof reason === 'string' ? { reason } : {}) };
}

function outputsOf(messages: readonly Fields[], asking: Asking): readonly Answer[] {
  const answered = new Set<string>();
  return asking.pending.flatMap((wait): readonly Answer[] => {
    if (wait.kind !== 'client') return [];
    const toolCallId = shownPendingId(asking, wait);
    // All calls within an agent have the id of the agent's call, so they are answered one after another.
    if (answered.has(toolCallId)) return [];
    answered.add(toolCallId);
    const message = messages.findLast(({ role, toolCallId: id }) => role === 'tool' && id === toolCallId);
    if (message === undefined) return [];
    const { content, error } = message;
    if (typeof error === 'string') return [{ id: wait.id, approved: false, reason: error }];
    const text = partsOf(content)
      .flatMap((part) => ('text' in part ? [part.text] : []))
      .join('\n');
    return [{ id: wait.id, result: typeof content === 'string' ? content : text }];
  });
}

/** Ids of the calls for which the client has results. */
function outputsIn({ messages }: AgUiInput): readonly string[] {
  return messages.flatMap(({ role, toolCallId }) =>
    role === 'tool' && typeof toolCallId === 'string' ? [toolCallId] : [],
  );
}

/**
 * The last message of the user. If it has had its turn, a new run answers it again; if its content has changed, it
 * replaces the old message.
 */
async function prompt({ messages, runId }: AgUiInput, view: ConversationView | undefined): Promise<Decision> {
  const last = messages.at(-1);
  if (last?.role !== 'user')
    throw new HttpFault(409, 'There is nothing new: the last message is not the user’s.');
  const id = checkId(last.id);
  const content = userContent(partsOf(last.content));
  const turn = turnOfMessage(view, id);
  if (view === undefined || turn === undefined) {
    const waits = [view?.turn?.entry, ...(view?.inbox ?? [])].find(
      (entry) => entry && messageIdOf(entry.key) === id,
    );
    if (waits !== undefined) return { kind: 'again', of: 'prompt', key: waits.key };
    checkNewMessage(id);
    return { kind: 'prompt', key: messageKey(id, runId), content };
  }
  const isSame = canonicalJson(view.messages[turn.begins]?.content ?? null) === canonicalJson(content);
  const key = messageKey(id, runId);
  if (isSame && turn.key === key) return { kind: 'again', of: 'prompt', key };
  return { kind: 'prompt', key, content, replaces: turn.key };
}

function partsOf(content: unknown): readonly SentPart[] {
  if (typeof content === 'string') return [{ text: content }];
  return Array.isArray(content) ? content.filter(isRecord).map(sentPart) : [];
}

function sentPart({ type, text, source }: Fields): SentPart {
  if (type === 'text' && typeof text === 'string') return { text };
  if (!isRecord(source) || typeof source.value !== 'string')
    throw new HttpFault(422, `A part of the type ${JSON.stringify(type)} is not supported.`);
  const { type: kind, value, mimeType } = source;
  const mediaType = typeof mimeType === 'string' ? mimeType : type === 'image' ? 'image/*' : '';
  if (kind === 'data') return { file: { url: `data:${mediaType};base64,${value}`, mediaType } };
  if (kind === 'url') return { file: { url: value, mediaType } };
  throw new HttpFault(422, 'A file at a provider is not supported.');
}

/** The run's ids, and the messages of the client. */
export function agUiRunOf(input: AgUiInput) {
  const { threadId, runId, state, messages } = input;
  // They are only returned to the client in snapshots.
  const known = messages.filter(({ id, role }) => typeof id === 'string' && ROLES.includes(String(role)));
  const given = outputsIn(input);
  return { threadId, runId, state, messages: known as unknown as readonly AgUiMessage[], given };
}

const ROLES = ['developer', 'system', 'assistant', 'user', 'tool', 'activity', 'reasoning'];

const PAYLOAD_EDITS = '`editedArgs` of the payload of its interrupt';
const PAYLOAD_REMEMBER = '`remember` of the payload of its interrupt';

const INPUT = {
  place: 'the input of a run',
  names: [],
  meant: { edits: PAYLOAD_EDITS, editedArgs: PAYLOAD_EDITS, remember: PAYLOAD_REMEMBER },
};

const RESUME_ENTRY = {
  place: 'an entry of `resume`',
  names: ['interruptId', 'status', 'payload'],
  meant: { ...INPUT.meant, editedArguments: PAYLOAD_EDITS, arguments: PAYLOAD_EDITS },
};

const PAYLOAD = {
  place: 'the payload of an approval',
  names: ['approved', 'reason', 'editedArgs', 'remember'],
  meant: { edits: PAYLOAD_EDITS, edited: PAYLOAD_EDITS, arguments: PAYLOAD_EDITS, args: PAYLOAD_EDITS },
};
