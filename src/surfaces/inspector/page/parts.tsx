import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { Icon, type IconName } from './icon.js';
import { Coloured, jsonText } from './json-view.js';

/** The heading of a view. It receives the focus when the view opens, so that screen readers announce it. */
export function Heading({
  children,
  subtitle,
}: {
  children: ComponentChildren;
  subtitle?: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <header class="view-head">
      <h1 ref={heading} tabIndex={-1}>
        {children}
      </h1>
      {subtitle && <p class="subtitle">{subtitle}</p>}
    </header>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
}

/** Untrusted text: never interpreted as markup, with invisible characters shown as codes. */
export function Text({ label, value }: TextProps) {
  return <Code label={label}>{value === '' ? <span class="faint">(empty)</span> : visibleText(value)}</Code>;
}

function Code({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, and this has a name alone
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached without a mouse
    <pre class="text" role="group" tabIndex={0} aria-label={label}>
      {children}
    </pre>
  );
}

/** Untrusted text, shortened to one line. */
export function Line({ value }: { value: string }) {
  const line = visibleText(value).replace(/\s+/g, ' ');
  return <>{line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line}</>;
}

const LONGEST_LINE = 300;

/** A value as JSON. */
export function Json({ label, value }: { label: string; value: unknown }) {
  return (
    <Code label={label}>
      <Coloured json={value === undefined ? '' : jsonText(value)} />
    </Code>
  );
}

/** The result of a tool, formatted if it is JSON. */
export function Result({ label, value }: TextProps) {
  const parsed = /^\s*[[{]/.test(value) ? parsedJson(value) : undefined;
  return parsed === undefined ? <Text label={label} value={value} /> : <Json label={label} value={parsed} />;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An object as a list of its members, any other value as JSON. */
export function Pairs({ label, value }: { label: string; value: unknown }) {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return <Json label={label} value={value} />;
  const members = Object.entries(value);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, and this has a name alone
    <div role="group" aria-label={label}>
      {members.length === 0 ? (
        <p class="faint small">No arguments</p>
      ) : (
        <dl class="pairs">
          {members.map(([key, member]) => (
            <>
              <dt>{visibleText(key)}</dt>
              <dd>
                <Member label={key} value={member} />
              </dd>
            </>
          ))}
        </dl>
      )}
    </div>
  );
}

const LONGEST_MEMBER = 400;

function Member({ label, value }: { label: string; value: unknown }) {
  if (typeof value === 'string' && value.includes('\n') && value.length <= LONGEST_MEMBER)
    return <>{visibleText(value)}</>;
  const json = jsonText(value);
  if (json.length <= LONGEST_MEMBER) return <Coloured json={json} />;
  return typeof value === 'string' ? (
    <Text label={label} value={value} />
  ) : (
    <Json label={label} value={value} />
  );
}

/** An error, announced by screen readers. */
export function Fault({ message }: { message: string | undefined }) {
  return <div role="alert">{message !== undefined && <p class="fault">{visibleText(message)}</p>}</div>;
}

const GOOD = new Set(['success', 'completed', 'connected', 'open', 'started']);
const WAITING = new Set(['suspended', 'running', 'held', 'waiting', 'begun', 'sign_in']);

export function statusKind(status: string): 'good' | 'waiting' | 'bad' {
  return GOOD.has(status) ? 'good' : WAITING.has(status) ? 'waiting' : 'bad';
}

export function Status({ value }: { value: string }) {
  const kind = statusKind(value);
  return (
    <span class={`status ${kind}`}>
      <Icon name={kind} />
      {value.replaceAll('_', ' ')}
    </span>
  );
}

interface CopyProps {
  /** A function is called on every click. */
  readonly text: string | (() => Promise<string>);
  readonly what: string;
}

/** A button that copies a text and confirms it. */
export function Copy({ text, what }: CopyProps) {
  const [said, setSaid] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'string' ? text : await text());
      setSaid('Copied');
    } catch {
      setSaid('The browser refused; select the text instead');
    }
  };
  return (
    <span class="action">
      <button type="button" class="quiet" onClick={copy}>
        <Icon name="copy" /> Copy {what}
      </button>
      <span role="status" class="small faint">
        {said}
      </span>
    </span>
  );
}

interface ActionProps {
  readonly onDo: () => Promise<unknown>;
  readonly kind?: 'main' | 'danger' | 'quiet';
  readonly icon?: IconName;
  readonly children: ComponentChildren;
}

/** A button for a request to the server, with the error beside it. */
export function Action({ onDo, kind, icon, children }: ActionProps) {
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    setFault(undefined);
    try {
      await onDo();
    } catch (error) {
      setFault((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <span class="action">
      <button type="button" class={kind} aria-disabled={isBusy} onClick={() => !isBusy && act()}>
        {icon && <Icon name={icon} />}
        {children}
      </button>
      {fault !== undefined && (
        <span role="alert" class="fault">
          {visibleText(fault)}
        </span>
      )}
    </span>
  );
}

export function time(at: number): string {
  return new Date(at).toLocaleTimeString();
}

export function duration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1_000) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 60_000) return `${Math.round(ms / 10) / 100} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Estimate: a token of English and JSON has about four characters. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / 4);
}

/** Parses JSON; `undefined` for an empty text. */
export function readJson(text: string, name: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is not JSON: ${(error as Error).message}`);
  }
}

let count = 0;

/** An id that connects a label and its field. */
export function useFieldId(): string {
  const [id] = useState(() => {
    count += 1;
    return `field-${count}`;
  });
  return id;
}

interface CodeFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly rows: number;
  readonly value: string;
  onWrite(text: string): void;
}

/** A field for JSON or code. */
export function CodeField({ label, hint, rows, value, onWrite }: CodeFieldProps) {
  const id = useFieldId();
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p class="hint" id={hintId}>
          {hint}
        </p>
      )}
      <textarea
        id={id}
        class="code"
        rows={rows}
        spellcheck={false}
        aria-describedby={hintId}
        value={value}
        onInput={({ currentTarget }) => onWrite(currentTarget.value)}
      />
    </div>
  );
}

/** A list, with the selected item beside it if there is one. */
export function Split({
  label,
  list,
  children,
}: {
  label: string;
  list: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <div class={children ? 'split chosen' : 'split'}>
      <nav class="list" aria-label={label}>
        {list}
      </nav>
      {children && <section class="detail">{children}</section>}
    </div>
  );
}

interface FilterProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly statuses?: readonly string[];
  readonly status?: string;
  readonly onStatus?: (status: string) => void;
}

/** A text filter, and a status filter if `onStatus` is set. */
export function Filter({ label, text, onText, statuses = [], status = '', onStatus }: FilterProps) {
  return (
    <div class="filters">
      <input
        type="search"
        data-filter
        aria-label={label}
        placeholder={`${label} ( / )`}
        value={text}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
      {onStatus && (
        <select
          aria-label="Status"
          value={status}
          onChange={({ currentTarget }) => onStatus(currentTarget.value)}
        >
          <option value="">Any status</option>
          {statuses.map((one) => (
            <option key={one} value={one}>
              {one.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

/** Whether a text contains all words of a filter. */
export function hasWords(text: string, filter: string): boolean {
  const found = text.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => found.includes(word));
}
