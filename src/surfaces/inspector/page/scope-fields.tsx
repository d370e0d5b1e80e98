import { useState } from 'preact/hooks';
import { CodeField, readJson } from './parts.js';

/** The fields of a scope, as text. */
export interface ScopeTexts {
  readonly data: string;
  readonly request: string;
  readonly owner: string;
  readonly chatId: string;
  readonly channel: string;
}

const EMPTY: ScopeTexts = { data: '', request: '', owner: '', chatId: '', channel: '' };
const KEPT = 'toolwright-inspector-scope';

/** The scope of this tab, shared by calls and chats. */
export function useScope(): [ScopeTexts, (texts: ScopeTexts) => void] {
  const [texts, setTexts] = useState(storedScope);
  const keep = (changed: ScopeTexts) => {
    sessionStorage.setItem(KEPT, JSON.stringify(changed));
    setTexts(changed);
  };
  return [texts, keep];
}

/** The current fields, for calls that no form makes. */
export function storedScope(): ScopeTexts {
  const kept = sessionStorage.getItem(KEPT);
  return kept === null ? EMPTY : { ...EMPTY, ...(JSON.parse(kept) as ScopeTexts) };
}

/** Parses the fields. */
export function scopeOf({ data, request, owner, chatId, channel }: ScopeTexts): Record<string, unknown> {
  const parts = {
    data: readJson(data, 'Data'),
    request: readJson(request, 'Request'),
    owner: readJson(owner, 'Owner'),
    chatId: chatId || undefined,
    channel: channel || undefined,
  };
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined));
}

const FIELDS = [
  ['data', 'Data', 'context.data of tools, as JSON: {"userId": "u1"}'],
  ['request', 'Request', 'the request that guards and providers see, as JSON: {"user": {"id": "u1"}}'],
  ['owner', 'Owner', 'the owner of the run, as JSON: {"user": "u1"}'],
  ['chatId', 'Chat id', 'as text'],
  ['channel', 'Channel', 'as text'],
] as const;

export function ScopeFields({ texts, onChange }: { texts: ScopeTexts; onChange(texts: ScopeTexts): void }) {
  const isSet = Object.values(texts).some((text) => text !== '');
  return (
    <details class="scope">
      <summary>Scope: {isSet ? 'set' : 'not set'}</summary>
      {FIELDS.map(([name, label, hint]) => (
        <CodeField
          key={name}
          rows={1}
          {...{ label, hint, value: texts[name] }}
          onWrite={(text) => onChange({ ...texts, [name]: text })}
        />
      ))}
    </details>
  );
}
