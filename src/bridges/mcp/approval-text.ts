import type { JsonObject } from '../../contract/json-schema.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { visibleText } from '../../kernel/visible-text.js';

/** Longer texts are cut one by one, so that none can push another out of sight. */
const MOST_OF_A_TEXT = 200;
/** What a person can be asked to read. */
const MOST_CHARACTERS = 8_000;
const MOST_DEPTH = 20;

/**
 * What a user is asked before a call runs: every key and value, with nothing hidden in them. `undefined` where
 * that would be more than anybody reads: then nobody must be asked.
 */
export function approvalText({ name, annotations }: ToolDefinition, args: JsonObject): string | undefined {
  const title = annotations?.title;
  const called = title === undefined ? `'${name}'` : `'${visibleText(title)}' (${name})`;
  const shown = new ShownValue().write(args, '');
  return shown && `Run ${called} with these arguments?\n${shown}`;
}

/** Writes indented JSON, until there is too much of it. */
class ShownValue {
  #left = MOST_CHARACTERS;

  write(value: unknown, indent: string): string | undefined {
    if (typeof value === 'string') return this.#take(shownText(value));
    if (typeof value !== 'object' || value === null) return this.#take(JSON.stringify(value) ?? 'null');
    if (indent.length > 2 * MOST_DEPTH) return undefined;
    const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
    const inner = `${indent}  `;
    const lines: string[] = [];
    for (const [key, part] of Object.entries(value)) {
      const label = Array.isArray(value) ? '' : `${visibleText(JSON.stringify(key))}: `;
      if (this.#take(inner + label) === undefined) return undefined;
      const text = this.write(part, inner);
      if (text === undefined) return undefined;
      lines.push(inner + label + text);
    }
    return lines.length === 0 ? open + close : `${open}\n${lines.join(',\n')}\n${indent}${close}`;
  }

  #take(text: string): string | undefined {
    this.#left -= text.length;
    return this.#left < 0 ? undefined : text;
  }
}

function shownText(text: string): string {
  if (text.length <= MOST_OF_A_TEXT) return visibleText(JSON.stringify(text));
  const start = visibleText(JSON.stringify(text.slice(0, MOST_OF_A_TEXT)));
  return `${start}… (${text.length.toLocaleString('en')} characters)`;
}
