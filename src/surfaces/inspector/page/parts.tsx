import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';

/** The heading of a view; the focus comes here when the view is opened, so that a screen reader tells where it is. */
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

/** A text of others: nothing in it is markup, and what cannot be seen in it stands there as its code. */
export function Text({ label, value }: { label: string; value: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has fields, and this has a name alone
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached without a mouse
    <pre class="text" role="group" tabIndex={0} aria-label={label}>
      {value === '' ? <span class="faint">(empty)</span> : visibleText(value)}
    </pre>
  );
}

/** A short text of others, on one line. */
export function Line({ value }: { value: string }) {
  const line = visibleText(value).replace(/\s+/g, ' ');
  return <>{line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line}</>;
}

const LONGEST_LINE = 300;

/** Any value, as JSON. */
export function Json({ label, value }: { label: string; value: unknown }) {
  return <Text label={label} value={value === undefined ? '' : JSON.stringify(value, null, 2)} />;
}

/** What went wrong; a screen reader tells it at once. */
export function Fault({ message }: { message: string | undefined }) {
  return <div role="alert">{message !== undefined && <p class="fault">{visibleText(message)}</p>}</div>;
}

const GOOD = new Set(['success', 'completed', 'open', 'started']);
const WAITING = new Set(['suspended', 'running', 'held', 'waiting', 'begun']);

export function Status({ value }: { value: string }) {
  const kind = GOOD.has(value) ? 'good' : WAITING.has(value) ? 'waiting' : 'bad';
  return <span class={`status ${kind}`}>{value.replaceAll('_', ' ')}</span>;
}

/** A button that copies a text, and says that it has. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [said, setSaid] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied');
    } catch {
      setSaid('The browser does not allow it: mark the text and copy it');
    }
  };
  return (
    <span>
      <button type="button" onClick={copy}>
        Copy {what}
      </button>{' '}
      <span role="status">{said}</span>
    </span>
  );
}

/** A button that does something elsewhere: what is refused stands beside it. */
export function Action({ onDo, children }: { onDo: () => Promise<unknown>; children: ComponentChildren }) {
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
      <button type="button" aria-disabled={isBusy} onClick={() => !isBusy && act()}>
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
  return ms < 1_000 ? `${Math.round(ms * 10) / 10} ms` : `${Math.round(ms / 10) / 100} s`;
}

/** Reads what somebody wrote as JSON; nothing where it is empty. */
export function readJson(text: string, name: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is no JSON: ${(error as Error).message}`);
  }
}

let count = 0;

/** An id for a label and its field. */
export function useFieldId(): string {
  const [id] = useState(() => {
    count += 1;
    return `field-${count}`;
  });
  return id;
}

/** A field for code: JSON, or lines of a test. */
export function CodeField({
  label,
  hint,
  rows,
  value,
  onWrite,
}: {
  label: string;
  hint?: string;
  rows: number;
  value: string;
  onWrite(text: string): void;
}) {
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
