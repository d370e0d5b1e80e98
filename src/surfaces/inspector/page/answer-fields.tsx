import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { ArgumentsField, type WrittenArguments } from './arguments-field.js';
import { Action, CodeField, Pairs, readJson, Text, useFieldId } from './parts.js';
import { Refusal } from './refusal.js';
import { useRemote } from './remote.js';
import { firstValue, type Schema } from './schema.js';
import { SchemaField } from './schema-form.js';

/** What a call waits for. */
export interface Wait {
  readonly kind: 'approval' | 'question' | 'client' | 'outcome';
  readonly message?: string;
  readonly schema?: Schema;
}

/** A wait with its call. */
export interface CallWait extends Wait {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** From the tool, for the person who answers. */
  readonly title?: string;
  readonly description?: string;
  readonly risk?: string;
  readonly expiresAt?: string;
  /** Default: all. */
  readonly decisions?: readonly string[];
  /** Whether an approval may apply to later calls. */
  readonly mayRemember?: { readonly scopes: readonly Scope[]; readonly maxMs?: number };
  /** The enclosing calls of a nested run, from the outermost. */
  readonly path?: readonly { readonly callId: string; readonly tool: string }[];
}

/** The later calls that an approval applies to. */
interface Remember {
  readonly scope: string;
  readonly expires?: string;
}

type Scope = 'run' | 'conversation' | 'user';

const SCOPES: Readonly<Record<Scope, string>> = {
  run: 'for the rest of this run',
  conversation: 'to this conversation',
  user: 'to this user',
};

type OnAnswer = (answer: Readonly<Record<string, unknown>>) => Promise<unknown>;

interface AnswerProps {
  readonly wait: CallWait;
  readonly onAnswer: OnAnswer;
}

/** Fields and buttons for the possible answers to a wait. */
export function AnswerFields({ wait, onAnswer }: AnswerProps) {
  const { kind, message } = wait;
  const refusal = mayDecide(wait, 'refuse') && (
    <Refusal onRefuse={(reason) => onAnswer({ approved: false, reason })}>
      Refuse {visibleText(wait.tool)}
    </Refusal>
  );
  return (
    <div class="answer">
      {message !== undefined && <Text label="Message" value={message} />}
      {kind === 'approval' && (
        <Approval wait={wait} onAnswer={onAnswer}>
          {refusal}
        </Approval>
      )}
      {kind === 'question' && <Question wait={wait} onAnswer={onAnswer} />}
      {kind === 'client' && (
        <Written label="Result of the client" onSend={(result) => onAnswer({ result })} send="Give result" />
      )}
      {kind === 'outcome' && (
        <>
          <Written
            label="Its result"
            onSend={(result) => onAnswer({ outcome: 'done', result })}
            send="It was done"
          />
          <Action onDo={() => onAnswer({ outcome: 'not-done' })}>It was not executed: run it</Action>
        </>
      )}
      {kind !== 'approval' && refusal && <div class="actions">{refusal}</div>}
    </div>
  );
}

function mayDecide({ decisions }: CallWait, decision: string): boolean {
  return decisions === undefined || decisions.includes(decision);
}

function Approval({ wait, onAnswer, children }: AnswerProps & { readonly children: ComponentChildren }) {
  const [edited, setEdited] = useState<WrittenArguments>();
  const [remember, setRemember] = useState<Remember>();
  const { answer: card } = useRemote<{ readonly parameters: Schema }>(
    edited && `tools/${encodeURIComponent(wait.tool)}`,
    [],
  );
  const approve = () =>
    onAnswer({
      approved: true,
      ...(remember === undefined ? {} : { remember }),
      ...(edited === undefined ? {} : { arguments: editedArguments(edited) }),
    });
  return (
    <>
      {edited === undefined ? (
        <Pairs label={`Arguments of ${wait.tool}`} value={wait.arguments} />
      ) : (
        <ArgumentsField
          label="Edited arguments"
          schema={card?.parameters}
          written={edited}
          onChange={setEdited}
        />
      )}
      {wait.mayRemember !== undefined && <Standing may={wait.mayRemember} onChange={setRemember} />}
      <div class="actions">
        {(edited !== undefined || mayDecide(wait, 'approve')) && (
          <Action kind="main" icon="good" onDo={approve}>
            {edited === undefined ? 'Approve' : 'Approve as edited'} {visibleText(wait.tool)}
          </Action>
        )}
        {edited === undefined && mayDecide(wait, 'edit') && (
          <button type="button" onClick={() => setEdited({ value: wait.arguments })}>
            Edit arguments
          </button>
        )}
        {children}
      </div>
    </>
  );
}

function editedArguments({ text, value }: WrittenArguments): unknown {
  return (text === undefined ? value : readJson(text, 'Edited arguments')) ?? {};
}

/** Lets an approval apply to later calls, as far as the tool allows. */
function Standing({
  may: { scopes, maxMs },
  onChange,
}: {
  may: NonNullable<CallWait['mayRemember']>;
  onChange(remember: Remember | undefined): void;
}) {
  const [scope, setScope] = useState('');
  const [until, setUntil] = useState('');
  const id = useFieldId();
  const choose = (chosen: string, end: string) => {
    setScope(chosen);
    setUntil(end);
    const expires = end === '' ? {} : { expires: new Date(end).toISOString() };
    onChange(chosen === '' ? undefined : { scope: chosen, ...expires });
  };
  return (
    <div class="field">
      <label for={id}>The approval applies</label>
      <select id={id} value={scope} onChange={({ currentTarget }) => choose(currentTarget.value, until)}>
        <option value="">only for this call</option>
        {scopes.map((one) => (
          <option key={one} value={one}>
            {SCOPES[one]}
          </option>
        ))}
      </select>
      {scope !== '' && (
        <label>
          until{' '}
          <input
            type="datetime-local"
            value={until}
            onInput={({ currentTarget }) => choose(scope, currentTarget.value)}
          />{' '}
          <span class="faint small">
            {maxMs === undefined
              ? 'empty: no end'
              : `empty: until ${new Date(Date.now() + maxMs).toLocaleString()}, the latest possible time`}
          </span>
        </label>
      )}
    </div>
  );
}

function Question({ wait, onAnswer }: AnswerProps) {
  const schema = wait.schema ?? {};
  const [value, setValue] = useState<unknown>(() => firstValue(schema, schema, 1));
  return (
    <>
      <SchemaField name="answer" schema={schema} root={schema} value={value} isRequired onChange={setValue} />
      <Action kind="main" onDo={() => onAnswer({ value })}>
        Answer
      </Action>
    </>
  );
}

function Written({
  label,
  send,
  onSend,
}: {
  label: string;
  send: string;
  onSend(value: unknown): Promise<unknown>;
}) {
  const [text, setText] = useState('');
  return (
    <>
      <CodeField label={`${label}, as JSON`} rows={3} value={text} onWrite={setText} />
      <Action kind="main" onDo={() => onSend(readJson(text, label) ?? null)}>
        {send}
      </Action>
    </>
  );
}
