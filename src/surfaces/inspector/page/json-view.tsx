import type { ComponentChildren } from 'preact';
import { visibleText } from '../../../core/kernel/visible-text.js';

const LINE_WIDTH = 68;
const LONGEST_COLOURED = 50_000;

/** Indented JSON; values that fit on one line are not broken. */
export function jsonText(value: unknown): string {
  const plain = JSON.stringify(value, null, 2) ?? '';
  return plain.length > LONGEST_COLOURED ? plain : printed(value, '');
}

function printed(value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '';
  const line = oneLine(value);
  if (line.length + indent.length <= LINE_WIDTH) return line;
  const inner = `${indent}  `;
  if (Array.isArray(value))
    return `[\n${value.map((member) => inner + printed(member ?? null, inner)).join(',\n')}\n${indent}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => `${inner}${JSON.stringify(key)}: ${printed(member, inner)}`);
  return `{\n${members.join(',\n')}\n${indent}}`;
}

function oneLine(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => `${JSON.stringify(key)}: ${oneLine(member)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d[\d.eE+-]*/g;

/** JSON with highlighted syntax. */
export function Coloured({ json }: { json: string }) {
  const text = visibleText(json);
  if (text.length > LONGEST_COLOURED) return <>{text}</>;
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [token, quoted, colon] = match;
    const kind = quoted === undefined ? 'json-number' : colon === undefined ? 'json-string' : 'json-key';
    parts.push(text.slice(end, match.index), <span class={kind}>{quoted ?? token}</span>, colon);
    end = match.index + token.length;
  }
  return (
    <>
      {parts}
      {text.slice(end)}
    </>
  );
}
