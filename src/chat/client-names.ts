import type { Answer, PendingCall } from '../contract/call.js';
import { canonicalJson, isRecord } from '../kernel/json.js';
import { misspeltName } from '../kernel/nearest-name.js';
import { HttpFault } from './http-fault.js';

type Fields = Readonly<Record<string, unknown>>;

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

const PAYLOAD_EDITS = '`editedArgs` of the payload of its interrupt';
const PAYLOAD_REMEMBER = '`remember` of the payload of its interrupt';

const INPUT: KnownNames = {
  place: 'the input of a run',
  names: [],
  meant: { edits: PAYLOAD_EDITS, editedArgs: PAYLOAD_EDITS, remember: PAYLOAD_REMEMBER },
};

const RESUME_ENTRY: KnownNames = {
  place: 'an entry of `resume`',
  names: ['interruptId', 'status', 'payload'],
  meant: { ...INPUT.meant, editedArguments: PAYLOAD_EDITS, arguments: PAYLOAD_EDITS },
};

const PAYLOAD: KnownNames = {
  place: 'the payload of an approval',
  names: ['approved', 'reason', 'editedArgs', 'remember'],
  meant: { edits: PAYLOAD_EDITS, edited: PAYLOAD_EDITS, arguments: PAYLOAD_EDITS, args: PAYLOAD_EDITS },
};

/** Applications send fields of their own in the body: only an object under a name like one of ours is a slip. */
export function checkBodyNames(body: Fields): void {
  checkNames(objectsOf(body), BODY);
}

/** The same of the input of AG-UI, which has none of them. */
export function checkInputNames(input: Fields): void {
  checkNames(objectsOf(input), INPUT);
}

export function checkApprovalNames(approval: Fields): void {
  checkNames(approval, APPROVAL);
}

/** An entry of `resume` for an approval. The arguments that it was asked about may stand in it: they change nothing. */
export function checkResumeNames(entry: Fields, wait: PendingCall): void {
  checkNames(entry, RESUME_ENTRY);
  if (!isRecord(entry.payload)) return;
  const asked = canonicalJson(wait.arguments);
  const given = Object.entries(entry.payload).filter(
    ([name, value]) => !(/^arg(?:ument)?s$/.test(name) && canonicalJson(value) === asked),
  );
  checkNames(Object.fromEntries(given), PAYLOAD);
}

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
  return Object.fromEntries(Object.entries(given).filter(([, value]) => isRecord(value)));
}

/** What a client says by ids of what waits, and the answers that it comes with. */
interface SaidById {
  readonly edits: Fields;
  readonly remember: Fields;
  readonly outputs: Fields;
  readonly answers: readonly Answer[];
  readonly pending: readonly PendingCall[];
  /** Ids that the client has from before: what it once said of them may still stand in its body. */
  readonly settled: ReadonlySet<unknown>;
}

/**
 * Refuses what is said of nothing that waits: what a person has changed must not be left out while the call is made
 * as it was.
 */
export function checkIds({ edits, remember, outputs, answers, pending, settled }: SaidById): void {
  const waiting = (kinds: readonly string[]) => pending.filter(({ kind }) => kinds.includes(kind));
  const isAnswered = ({ id }: PendingCall): boolean => answers.some((answer) => answer.id === id);
  const asked = { approvals: waiting(['approval']), outputs: waiting(['question', 'client']) };
  const said = [
    { name: 'edits', given: edits, waits: asked.approvals },
    { name: 'remember', given: remember, waits: asked.approvals },
    { name: 'outputs', given: outputs, waits: asked.outputs },
  ];
  for (const { name, given, waits } of said)
    for (const id of Object.keys(given)) {
      const wait = waits.find((candidate) => candidate.id === id);
      if (wait !== undefined && isAnswered(wait)) continue;
      const shown = `\`${name}\` has ${JSON.stringify(id)}`;
      if (wait !== undefined)
        throw new HttpFault(422, `${shown}, which is not approved in the same request. Nothing was done.`);
      if (settled.has(id)) continue;
      const ids = waits.map((candidate) => `'${candidate.id}' (${candidate.tool})`).join(', ') || 'nothing';
      throw new HttpFault(
        422,
        `${shown}, which is the id of nothing that waits for it. That is: ${ids}. Nothing was done.`,
      );
    }
}

/** Ids of approvals that are over, and of questions, in the messages that a client has sent along. */
export function settledIds(messages: readonly unknown[]): ReadonlySet<unknown> {
  const parts = messages.flatMap((message) =>
    isRecord(message) && Array.isArray(message.parts) ? message.parts.filter(isRecord) : [],
  );
  const ids = parts.map(({ type, state, approval, data }) => {
    if (type === 'data-question' && isRecord(data)) return data.id;
    return isRecord(approval) && /^output-/.test(String(state)) ? approval.id : undefined;
  });
  return new Set(ids);
}
