import type { Answer, PendingCall } from '../../core/contract/call.js';
import type { UserMessage } from '../../core/contract/llm-provider.js';
import { checkArguments } from '../../core/errors/author-fault.js';
import {
  canonicalJson,
  type Fields,
  filterFields,
  isObject,
  isRecord,
  withoutUndefined,
} from '../../core/kernel/json.js';
import { misspeltName } from '../../core/kernel/nearest-name.js';
import { bytesOf, sendsJson } from '../../core/kernel/node-http.js';
import { LIST } from '../../core/kernel/options.js';
import type { ConversationView, HistoryTurn } from '../../run/conversation/stored-turns.js';
import { type AgUiMessage, type Asking, shownPendingId } from './turn-encoder.js';
import { type AskedChat, hasAnswers, type ReadEvent } from './turn-readings.js';

/** Reads a request of `useChat` of the AI SDK. */
export function readUiMessageRequest(body: unknown): Pick<PostedChat, 'chatId' | 'decide'> {
  if (!isRecord(body)) throw new HttpFault(400, 'The body must be an object.');
  const { id, messages, trigger = 'submit-message', messageId } = body;
  const { edits = {}, remember = {}, outputs = {} } = body;
  if (!isRecord(edits) || !isRecord(remember) || !isRecord(outputs))
    throw new HttpFault(422, '`edits`, `remember` and `outputs` are objects, by the ids of what is pending.');
  const chatId = checkId(id);
  const named = messageId === undefined || messageId === null ? undefined : checkId(messageId);
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  if (trigger === 'regenerate-message') {
    const wanted = named ?? (isRecord(last) ? checkId(last.id) : '');
    return { chatId, decide: ({ view }) => answerAnew(view, wanted) };
  }
  if (trigger !== 'submit-message')
    throw new HttpFault(422, `The trigger ${JSON.stringify(trigger)} is not supported.`);
  if (!isRecord(last) || !Array.isArray(last.parts))
    throw new HttpFault(400, 'The last message has no parts.');
  const parts = last.parts.filter(isRecord);
  if (last.role === 'assistant') {
    // Applications add fields of their own to the body: only an object with a similar name is treated as a typo.
    checkNames(objectsOf(body), BODY);
    // Approvals and questions that the client's messages show as answered.
    const sent = (messages as readonly unknown[]).flatMap(partsIn).map(({ type, state, approval, data }) => {
      if (type === 'data-question' && isRecord(data)) return data.id;
      return isRecord(approval) && /^output-/.test(String(state)) ? approval.id : undefined;
    });
    const settled = new Set(sent);
    return { chatId, decide: ({ view }) => takeAnswers(view, { parts, edits, remember, outputs, settled }) };
  }
  if (last.role !== 'user')
    throw new HttpFault(400, 'The role of the last message must be user or assistant.');
  const said = { id: checkId(last.id), content: userContent(parts.flatMap(sentParts)) };
  return { chatId, decide: ({ view }) => (named === undefined ? prompt(view, said) : edit(view, said)) };
}

/**
 * Extracts from the last message of `useChat` the answers to the pending calls of a suspended run, for
 * `resumeToolLoop`. Other parts are ignored.
 *
 * @throws Error if an answer to an approval neither approves nor refuses, contains edits in a wrong place, or has a
 * misspelled name.
 */
export function uiMessageAnswers(message: unknown, pending: readonly PendingCall[]): readonly Answer[] {
  checkArguments({ of: 'uiMessageAnswers', given: { pending }, rules: { pending: LIST } });
  return clientAnswers({ parts: partsIn(message) }, { pending });
}

/**
 * Extracts the answers from a `RunAgentInput`.
 *
 * @throws Error if it does not answer everything that is pending, as AG-UI requires.
 */
export function agUiAnswers(input: unknown, pending: readonly PendingCall[]): readonly Answer[] {
  checkArguments({ of: 'agUiAnswers', given: { pending }, rules: { pending: LIST } });
  return agUiAnswersIn(readAgUiInput(input), { pending });
}

type Said = Pick<Extract<Decision, { readonly kind: 'prompt' }>, 'content'> & { readonly id: string };

/** A new prompt; a message that has had its turn is streamed again. */
function prompt(view: ConversationView | undefined, { id, content }: Said): Decision {
  refuseWhileWaiting(view);
  const turn = turnOfMessage(view, id);
  if (turn !== undefined) return { kind: 'again', of: 'prompt', key: turn.key };
  checkNewMessage(id);
  return { kind: 'prompt', key: messageKey(id), content };
}

/** Replaces a message and everything after it; an unchanged message is streamed again. */
async function edit(view: ConversationView | undefined, { id, content }: Said): Promise<Decision> {
  refuseWhileWaiting(view);
  const turn = turnOfMessage(view, id);
  if (view === undefined || turn === undefined) throw withoutTurn(view, id);
  if (hasContent(view, turn, content)) return { kind: 'again', of: 'prompt', key: turn.key };
  const attempt = `${turn.number}-${await digestOf(content)}`;
  return { kind: 'prompt', key: messageKey(id, attempt), content, replaces: turn.key };
}

/** Repeats the turn of a user's message, or the turn that produced an assistant's message. */
function answerAnew(view: ConversationView | undefined, wanted: string): Decision {
  refuseWhileWaiting(view);
  const turn = view?.history.find(({ number }) => `turn-${number}` === wanted) ?? turnOfMessage(view, wanted);
  const message = turn && view?.messages[turn.begins];
  const id = turn && messageIdOf(turn.key);
  if (turn === undefined || message?.role !== 'user' || id === undefined) throw withoutTurn(view, wanted);
  const key = messageKey(id, `${turn.number}-${crypto.randomUUID()}`);
  return { kind: 'prompt', key, content: message.content, replaces: turn.key };
}

/**
 * The answers of a message. Entries for ids that are not pending are refused: if an edit were ignored, the call would be
 * made with the old arguments. The client's body may still contain entries for calls that are `settled`.
 */
function takeAnswers(
  view: ConversationView | undefined,
  { settled, ...word }: Required<ClientWord> & { readonly settled: ReadonlySet<unknown> },
): Decision {
  const answers = view === undefined ? [] : clientAnswers(word, view);
  const { pending = [] } = view ?? {};
  for (const name of pending.length > 0 ? (['edits', 'remember', 'outputs'] as const) : []) {
    const waits = pending.filter((wait) => (name === 'outputs' ? isOutput(wait) : wait.kind === 'approval'));
    for (const id of Object.keys(word[name])) {
      const wait = waits.find((candidate) => candidate.id === id);
      if (wait !== undefined && answers.some((answer) => answer.id === id)) continue;
      const shown = `\`${name}\` has ${JSON.stringify(id)}`;
      if (wait !== undefined)
        throw new HttpFault(422, `${shown}, which is not approved in the same request. Nothing was done.`);
      if (settled.has(id)) continue;
      const ids = waits.map((candidate) => `'${candidate.id}' (${candidate.tool})`).join(', ') || 'nothing';
      const problem = 'which is not a pending id for it';
      throw new HttpFault(422, `${shown}, ${problem}. Pending: ${ids}. Nothing was done.`);
    }
  }
  if (answers.length > 0) return { kind: 'answers', key: crypto.randomUUID(), answers };
  // Several questions of one call, so that an output without an id is ambiguous.
  const asked = view === undefined ? [] : pending.filter(isOutput).map((wait) => shownPendingId(view, wait));
  if (new Set(asked).size < asked.length)
    throw new HttpFault(409, 'The call asks several things: `outputs` answers each of them by its id.');
  throw new HttpFault(409, 'Nothing is waiting for these answers.');
}

function turnOfMessage(view: ConversationView | undefined, id: string): HistoryTurn | undefined {
  return view?.history.find(({ key }) => messageIdOf(key) === id);
}

/** Whether a turn's message is unchanged. */
function hasContent(
  { messages }: ConversationView,
  { begins }: HistoryTurn,
  content: Said['content'],
): boolean {
  return canonicalJson(messages[begins]?.content ?? null) === canonicalJson(content);
}

function refuseWhileWaiting(view: ConversationView | undefined): void {
  if (view?.status === 'suspended')
    throw new HttpFault(409, 'The chat is waiting for answers; send them first.', { isPrompt: true });
}

/** Why a message that is not in the history cannot be edited or answered again. */
function withoutTurn(view: ConversationView | undefined, id: string): HttpFault {
  const isOpen = `turn-${view?.turn?.number}` === id || openEntry(view, id) !== undefined;
  const [status, message] = isOpen
    ? [409, 'The message is still being answered; wait for the answer, or abort it.']
    : [422, 'This chat has no such message.'];
  return new HttpFault(status, message, { isPrompt: true });
}

/** The entry of a message that is being answered or waits for its turn. */
function openEntry(view: ConversationView | undefined, id: string) {
  return [view?.turn?.entry, ...(view?.inbox ?? [])].find((entry) => entry && messageIdOf(entry.key) === id);
}

function sentParts({ type, text, url, mediaType, filename }: Fields): readonly SentPart[] {
  if (type === 'text' && typeof text === 'string') return [{ text }];
  if (type !== 'file') return [];
  if (typeof url !== 'string' || typeof mediaType !== 'string')
    throw new HttpFault(400, 'A file needs a url and a mediaType.');
  return [{ file: { url, mediaType, name: textIn(filename) } }];
}

/** The parts of a message of the AI SDK. */
function partsIn(message: unknown): readonly Fields[] {
  return isRecord(message) && Array.isArray(message.parts) ? message.parts.filter(isRecord) : [];
}

/** A client's statements about pending calls. */
interface ClientWord {
  readonly parts: readonly Fields[];
  /** Edited arguments, by the id of the approval. */
  readonly edits?: Fields;
  /** The future calls for which an approval is remembered, by its id. */
  readonly remember?: Fields;
  /** Answers to questions by id, for calls that ask several questions at once. */
  readonly outputs?: Fields;
}

/**
 * The answers to pending calls in a client's message. Everything else in it is ignored, because clients are not
 * trusted. Also ignored: contradictory answers to one approval, and an output without an id for a call with several
 * questions.
 */
function clientAnswers(word: ClientWord, asking: Asking): readonly Answer[] {
  const { outputs = {}, edits = {}, remember = {} } = word;
  return asking.pending.flatMap((wait) => {
    if (Object.hasOwn(outputs, wait.id) && isOutput(wait)) return [outputAnswer(wait, outputs[wait.id])];
    // Parts for the call, or for the call that contains its agent; readers of the plain events use the original id.
    const ids: readonly unknown[] = [shownPendingId(asking, wait), wait.path?.[0]?.callId ?? wait.callId];
    const parts = word.parts.filter(
      ({ type, toolCallId }) =>
        typeof type === 'string' && /^(?:tool-|dynamic-tool$)/.test(type) && ids.includes(toolCallId),
    );
    const given = parts.flatMap((part) => answerIn(part, wait) ?? []);
    const [answer] = given;
    if (answer === undefined || given.some((other) => canonicalJson(other) !== canonicalJson(answer)))
      return [];
    if (!isMeant(wait, word, asking)) return [];
    // Invalid values are refused together with the answer.
    const edited = Object.hasOwn(edits, wait.id) ? { arguments: edits[wait.id] } : {};
    const stands = Object.hasOwn(remember, wait.id) ? { remember: remember[wait.id] } : {};
    return [{ ...answer, ...edited, ...stands } as Answer];
  });
}

/** Whether an output is for this question, and not for another one of the same call. */
function isMeant(wait: PendingCall, { parts, outputs = {} }: ClientWord, asking: Asking): boolean {
  if (!isOutput(wait)) return true;
  const id = shownPendingId(asking, wait);
  // A page that shows only an earlier question of the call has answered that one.
  const shown = parts.flatMap(({ type, data }) =>
    type === 'data-question' && isRecord(data) && data.callId === id ? [data.id] : [],
  );
  if (wait.kind === 'question' && shown.length > 0 && !shown.includes(wait.id)) return false;
  const rivals = asking.pending.filter((other) => isOutput(other) && shownPendingId(asking, other) === id);
  if (rivals.length === 1) return true;
  if (rivals.some((rival) => Object.hasOwn(outputs, rival.id))) return false;
  // Calls of an agent that the client executes have no ids of their own, so they are answered one after another.
  return rivals.every(({ kind }) => kind === 'client') && rivals[0] === wait;
}

function isOutput({ kind }: PendingCall): boolean {
  return kind === 'client' || kind === 'question';
}

function answerIn(part: Fields, wait: PendingCall): Answer | undefined {
  const { state, output, errorText, approval } = part;
  if (isOutput(wait)) {
    if (state === 'output-error') return { id: wait.id, approved: false, reason: textIn(errorText) ?? '' };
    return state === 'output-available' ? outputAnswer(wait, output) : undefined;
  }
  // Clients cannot decide about a call whose process crashed.
  if (wait.kind !== 'approval' || state !== 'approval-responded') return undefined;
  if (isRecord(approval) && approval.id !== wait.id) return undefined;
  if (!isRecord(approval) || typeof approval.approved !== 'boolean') throw noApproval(wait);
  checkNames(approval, APPROVAL);
  return withoutUndefined({ id: wait.id, approved: approval.approved, reason: textIn(approval.reason) });
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** An answer in a wrong form is refused; ignoring it would look as if nothing were pending. */
function noApproval({ id, tool }: PendingCall): HttpFault {
  const wanted = '{ approved: true } or { approved: false }';
  return new HttpFault(422, `The answer to '${id}' (${tool}) must be ${wanted}. Nothing was done.`);
}

function outputAnswer({ id, kind }: PendingCall, output: unknown): Answer {
  const given = output ?? null;
  return kind === 'client' ? { id, result: given } : { id, value: given };
}

/** Known names of a part, and known mistakes with their corrections. */
interface KnownNames {
  /** The place of the names, for error messages. */
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

/** Refuses a name that looks like a typo of a known name. */
function checkNames(given: Fields, { place, names, meant }: KnownNames): void {
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

function objectsOf(given: Fields): Fields {
  return filterFields(given, (_name, value) => isRecord(value));
}

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

/** Reads a run of an AG-UI client: its ids and messages, and what to do with it. */
export function readAgUiRequest(body: unknown) {
  const input = readAgUiInput(body);
  const { threadId, runId, state, messages, resume } = input;
  // They are only returned to the client in snapshots.
  const known = messages.filter(({ id, role }) => typeof id === 'string' && ROLES.includes(String(role)));
  // Ids of the calls for which the client has results.
  const given = messages.flatMap(({ role, toolCallId }) =>
    role === 'tool' && typeof toolCallId === 'string' ? [toolCallId] : [],
  );
  /** Throws an {@link HttpFault} that refuses the run. */
  const decide = async ({ view, source }: AskedChat): Promise<Decision> => {
    const key = `resume ${await digestOf([resume, given])}`;
    if (view?.status === 'suspended') {
      const answers = agUiAnswersIn(input, view);
      if (answers.length > 0) return { kind: 'answers', key, answers };
      const problem =
        'The thread is suspended: the request needs `resume`, or the results of its tool calls.';
      throw new HttpFault(409, problem, { isPrompt: true });
    }
    if (resume.length === 0) return agUiPrompt(input, view);
    // The same answers were sent before: report their outcome again.
    if (view !== undefined && (await hasAnswers(source, view, key)))
      return { kind: 'again', of: 'answers', key };
    throw new HttpFault(409, 'Nothing is waiting for these answers.');
  };
  const run = { threadId, runId, state, messages: known as unknown as readonly AgUiMessage[], given };
  return { run, decide };
}

function readAgUiInput(body: unknown): AgUiInput {
  if (!isRecord(body)) throw new HttpFault(400, 'The body must be an object.');
  const { threadId, runId, messages, state, resume = [] } = body;
  if (!Array.isArray(messages)) throw new HttpFault(400, 'messages must be a list.');
  if (!Array.isArray(resume) || !resume.every(isResumeEntry))
    throw new HttpFault(400, 'resume must be a list of { interruptId, status, payload }.');
  if (resume.length > 0) checkNames(objectsOf(body), AG_UI_INPUT);
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

/** Answers to all questions and approvals, and the results of calls that the client executes. */
function agUiAnswersIn({ resume, messages }: AgUiInput, asking: Asking): readonly Answer[] {
  const interrupts = asking.pending.filter(({ kind }) => kind === 'approval' || kind === 'question');
  const byId = new Map(interrupts.map((wait) => [wait.id, wait]));
  const resumed = new Map(resume.map((entry) => [entry.interruptId, entry]));
  if (resumed.size < resume.length) throw new HttpFault(409, '`resume` contains an interrupt twice.');
  const foreign = [...resumed.keys()].filter((id) => !byId.has(id));
  if (foreign.length > 0) throw new HttpFault(409, `Nothing is waiting for ${foreign.join(', ')}.`);
  const missing = interrupts.filter(({ id }) => !resumed.has(id)).map(({ id }) => id);
  if (missing.length > 0)
    throw new HttpFault(409, `\`resume\` must cover ${missing.join(', ')}, too.`, {
      isPrompt: resume.length === 0,
    });
  const given = interrupts.map((wait) => resumeAnswer(resumed.get(wait.id) as ResumeEntry, wait));
  const answered = new Set<string>();
  const outputs = asking.pending.flatMap((wait): readonly Answer[] => {
    if (wait.kind !== 'client') return [];
    const toolCallId = shownPendingId(asking, wait);
    // All calls within an agent have the id of the agent's call, so they are answered one after another.
    if (answered.has(toolCallId)) return [];
    answered.add(toolCallId);
    const message = messages.findLast(({ role, toolCallId: id }) => role === 'tool' && id === toolCallId);
    if (message === undefined) return [];
    const { content, error } = message;
    if (typeof error === 'string') return [{ id: wait.id, approved: false, reason: error }];
    return [{ id: wait.id, result: textOf(partsOf(content)) }];
  });
  return [...given, ...outputs];
}

function resumeAnswer(entry: ResumeEntry, wait: PendingCall): Answer {
  const { status, payload } = entry;
  const { id, kind } = wait;
  if (status === 'cancelled') return { id, approved: false, reason: 'It was cancelled.' };
  if (kind === 'question') {
    if (payload === undefined) throw new HttpFault(422, `The answer to ${id} has no payload.`);
    return { id, value: payload };
  }
  if (!isRecord(payload) || typeof payload.approved !== 'boolean') throw noApproval(wait);
  checkNames({ ...entry }, RESUME_ENTRY);
  // Clients may send the unchanged arguments back.
  const asked = canonicalJson(wait.arguments);
  const changed = filterFields(
    payload,
    (name, value) => !(/^arg(?:ument)?s$/.test(name) && canonicalJson(value) === asked),
  );
  checkNames(changed, PAYLOAD);
  const { approved, reason, editedArgs, remember } = payload;
  // Invalid values are refused together with the answer.
  return withoutUndefined({
    id,
    approved,
    arguments: editedArgs,
    remember,
    reason: textIn(reason),
  }) as Answer;
}

/**
 * The last message of the user. If it has had its turn, a new run answers it again; if its content has changed, it
 * replaces the old message.
 */
async function agUiPrompt(
  { messages, runId }: AgUiInput,
  view: ConversationView | undefined,
): Promise<Decision> {
  const last = messages.at(-1);
  if (last?.role !== 'user')
    throw new HttpFault(409, 'The request has no new message: the last message is not from the user.');
  const id = checkId(last.id);
  const content = userContent(partsOf(last.content));
  const turn = turnOfMessage(view, id);
  if (view === undefined || turn === undefined) {
    const waits = openEntry(view, id);
    if (waits !== undefined) return { kind: 'again', of: 'prompt', key: waits.key };
    checkNewMessage(id);
    return { kind: 'prompt', key: messageKey(id, runId), content };
  }
  const key = messageKey(id, runId);
  if (turn.key === key && hasContent(view, turn, content)) return { kind: 'again', of: 'prompt', key };
  return { kind: 'prompt', key, content, replaces: turn.key };
}

function partsOf(content: unknown): readonly SentPart[] {
  if (typeof content === 'string') return [{ text: content }];
  return Array.isArray(content) ? content.filter(isRecord).map(agUiPart) : [];
}

function agUiPart({ type, text, source }: Fields): SentPart {
  if (type === 'text' && typeof text === 'string') return { text };
  if (!isRecord(source) || typeof source.value !== 'string')
    throw new HttpFault(422, `A part of the type ${JSON.stringify(type)} is not supported.`);
  const { type: kind, value, mimeType } = source;
  const mediaType = typeof mimeType === 'string' ? mimeType : type === 'image' ? 'image/*' : '';
  if (kind === 'data') return { file: { url: `data:${mediaType};base64,${value}`, mediaType } };
  if (kind === 'url') return { file: { url: value, mediaType } };
  throw new HttpFault(422, 'A file that is stored at a provider is not supported.');
}

const ROLES = ['developer', 'system', 'assistant', 'user', 'tool', 'activity', 'reasoning'];

const PAYLOAD_EDITS = '`editedArgs` of the payload of its interrupt';
const PAYLOAD_REMEMBER = '`remember` of the payload of its interrupt';

const AG_UI_INPUT = {
  place: 'the input of a run',
  names: [],
  meant: { edits: PAYLOAD_EDITS, editedArgs: PAYLOAD_EDITS, remember: PAYLOAD_REMEMBER },
};

const RESUME_ENTRY = {
  place: 'an entry of `resume`',
  names: ['interruptId', 'status', 'payload'],
  meant: { ...AG_UI_INPUT.meant, editedArguments: PAYLOAD_EDITS, arguments: PAYLOAD_EDITS },
};

const PAYLOAD = {
  place: 'the payload of an approval',
  names: ['approved', 'reason', 'editedArgs', 'remember'],
  meant: { edits: PAYLOAD_EDITS, edited: PAYLOAD_EDITS, arguments: PAYLOAD_EDITS, args: PAYLOAD_EDITS },
};

/** What to do with a request, given the state of the chat. */
type Decision =
  | {
      readonly kind: 'prompt';
      readonly key: string;
      readonly content: UserMessage['content'];
      /** Key of the turn to replace. */
      readonly replaces?: string;
    }
  | { readonly kind: 'answers'; readonly key: string; readonly answers: readonly Answer[] }
  /** The request was sent before; its outcome is reported again. */
  | { readonly kind: 'again'; readonly of: 'prompt' | 'answers'; readonly key: string };

/** Encodes the events of a turn as server-sent events. */
export type WriteFrames = (
  events: AsyncIterable<ReadEvent>,
  how: {
    /** The events continue a message that the reader has. */
    readonly goesOn: boolean;
    readonly asked: AskedChat;
  },
) => AsyncGenerator<string, undefined>;

/** A request of a client, parsed by its protocol. */
export interface PostedChat {
  readonly chatId: string;
  readonly decide: (asked: AskedChat) => Decision | Promise<Decision>;
  readonly frames: WriteFrames;
  /** The response for a request that was refused. */
  readonly refuse: (fault: HttpFault) => Response;
}

export interface ChatProtocol {
  readonly headers: Readonly<Record<string, string>>;
  /** @throws HttpFault for an invalid request. */
  readonly readPost: (body: unknown) => PostedChat;
  /** For a reader that reconnects. */
  readonly reconnect: (address: ChatAddress) => {
    readonly frames: WriteFrames;
    /** The reader always gets the open turn from its start, and a stream even if no turn is open. */
    readonly isWhole: boolean;
  };
  /** Past messages, in the format of the front end. */
  readonly history: (asked: AskedChat) => Promise<readonly object[]>;
}

/** The chat of a request without a body. */
export interface ChatAddress {
  readonly chatId: string;
  readonly query: URLSearchParams;
}

/** `…/{id}/stream`, which the AI SDK requests, `…/{id}/messages`, or `?id=…`. */
export function addressOf({ method, url }: Request): ChatAddress & { readonly isHistory: boolean } {
  const { pathname, searchParams } = new URL(url);
  const [, encoded, what = pathname.endsWith('/messages') ? 'messages' : ''] =
    /\/([^/]+)\/(stream|messages)$/.exec(pathname) ?? [];
  try {
    const chatId = checkId(searchParams.get('id') ?? (encoded && decodeURIComponent(encoded)));
    return { chatId, query: searchParams, isHistory: method === 'GET' && what === 'messages' };
  } catch (error) {
    throw error instanceof HttpFault ? error : new HttpFault(400, 'The path is not valid percent-encoding.');
  }
}

/** A refused request, with a message for its sender. */
export class HttpFault extends Error {
  readonly status: number;
  /** The request is a prompt, for which the chat is not ready. */
  readonly isPrompt: boolean;

  constructor(status: number, message: string, { isPrompt = false } = {}) {
    super(message);
    this.status = status;
    this.isPrompt = isPrompt;
  }

  get response(): Response {
    return Response.json(
      { error: { message: this.message } },
      { status: this.status, headers: { 'cache-control': 'no-store' } },
    );
  }
}

const LONGEST_ID = 200;
/** Entry keys contain two URL-encoded ids and must fit into a store. */
const LONGEST_ENCODED = 240;

function checkId(id: unknown): string {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= LONGEST_ID) {
    // Databases cannot store lone surrogates or U+0000, and limit the length of ids.
    const isStorable = id.isWellFormed() && !id.includes('\u0000');
    if (isStorable && encodeURIComponent(id).length <= LONGEST_ENCODED) return id;
  }
  const long = `${LONGEST_ID} characters (${LONGEST_ENCODED} as encodeURIComponent writes it)`;
  throw new HttpFault(400, `An id must be a string of 1 to ${long}, without U+0000.`);
}

export async function readJson(request: Request, maxRequestBytes: number): Promise<unknown> {
  if (!sendsJson(request)) throw new HttpFault(415, 'The content type must be application/json.');
  const bytes = await bytesOf(request, maxRequestBytes);
  if (bytes === undefined) throw new HttpFault(413, `The body has more than ${maxRequestBytes} bytes.`);
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new HttpFault(400, 'The body is not JSON.');
  }
  let level: readonly unknown[] = [body];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) throw new HttpFault(400, `The body is nested deeper than ${DEEPEST} levels.`);
    level = level.flatMap((value) => (isObject(value) ? Object.values(value) : []));
  }
  return body;
}

/** Below the depth that parsers accept, so that serializing cannot overflow the stack. */
const DEEPEST = 500;

/**
 * The conversation key of a client's message. `attempt` distinguishes a message that was sent again on purpose: edited,
 * or to be answered again.
 */
function messageKey(messageId: string, attempt?: string): string {
  const key = `message ${encodeURIComponent(messageId)}`;
  return attempt === undefined ? key : `${key} ${encodeURIComponent(attempt)}`;
}

/** The id of the client's message with this key; `undefined` for other keys. */
export function messageIdOf(key: string): string | undefined {
  const [, encoded] = /^message (\S+)(?: \S+)?$/.exec(key) ?? [];
  return encoded && decodeURIComponent(encoded);
}

/** A digest of JSON that does not depend on the order of keys. */
export async function digestOf(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(canonicalJson(value));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Ids of turns and their contents; messages of a user cannot have such ids. */
const OF_SERVER = /^turn-\d/;

/** Refuses ids for new messages that clients use, or will use, for something else. */
function checkNewMessage(id: string): void {
  if (OF_SERVER.test(id))
    throw new HttpFault(
      422,
      'Ids that begin with `turn-` and a number are reserved for the server; use another id.',
    );
}

/** A file from the user: a `data:` URL, or a URL that the model's provider can read. */
interface SentFile {
  readonly url: string;
  readonly mediaType: string;
  readonly name?: string | undefined;
}

/** A part of a user's message. */
type SentPart = { readonly text: string } | { readonly file: SentFile };

/** A user's message in the form of Chat Completions, which every provider accepts. */
function userContent(parts: readonly SentPart[]): UserMessage['content'] {
  const text = textOf(parts);
  const files = parts.flatMap((part) => ('file' in part ? [filePart(part.file)] : []));
  if (text.trim() !== '') return files.length === 0 ? text : [{ type: 'text', text }, ...files];
  if (files.length === 0) throw new HttpFault(400, 'The message is empty.');
  return files;
}

function textOf(parts: readonly SentPart[]): string {
  return parts.flatMap((part) => ('text' in part ? [part.text] : [])).join('\n');
}

function filePart({ url, mediaType, name }: SentFile): Fields {
  const isData = url.startsWith('data:');
  if (!isData && !/^https?:\/\//.test(url))
    throw new HttpFault(422, 'The url of a file must be a data: or http(s): URL.');
  if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  if (!isData) throw new HttpFault(422, 'The url of a file that is not an image must be a data: URL.');
  return { type: 'file', file: { filename: name ?? 'file', file_data: url } };
}
