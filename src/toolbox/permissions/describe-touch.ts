import type { Touch } from '../../contract/touch.js';
import { visibleLine } from '../../kernel/visible-text.js';
import type { PermissionRule } from './permission-rule.js';

const MOST_CHARACTERS = 200;

/** What a call would do, for people: `writes 'src/a.ts'`. Nothing in it is hidden, and it stays on its line. */
export function describeTouch(touch: Touch): string {
  switch (touch.action) {
    case 'read':
      return `reads ${quoted(touch.absolute ?? touch.path)}${touch.isDeep ? ' and what is in it' : ''}`;
    case 'write':
      return `changes ${quoted(touch.absolute ?? touch.path)}${touch.isDeep ? ' and what is in it' : ''}`;
    case 'run':
      return `runs ${quoted(touch.words.map((word) => word ?? '…').join(' '))}`;
    case 'open':
      return `opens ${quoted(touch.url)}`;
    case 'unknown':
      return 'does what cannot be told before';
  }
}

function quoted(text: string): string {
  const seen = visibleLine(text);
  return `'${seen.length > MOST_CHARACTERS ? `${seen.slice(0, MOST_CHARACTERS)}…` : seen}'`;
}

/**
 * The rules that a yes to a call stands for where it is to hold again: those very paths, commands and addresses, and
 * for what cannot be understood, the very same call.
 *
 * @example
 * ```ts
 * rulesOfYes('write_file', { path: 'a.txt' }, [{ action: 'write', path: 'a.txt' }]);
 * // [{ tool: 'write_file', action: 'write', path: 'a.txt' }]
 * ```
 */
export function rulesOfYes(
  tool: string,
  args: Readonly<Record<string, unknown>>,
  touches: readonly Touch[],
): readonly Omit<PermissionRule, 'decision'>[] {
  const exactly = {
    tool: escaped(tool),
    arguments: Object.fromEntries(Object.entries(args).map(exactValue)),
  };
  if (touches.length === 0) return [exactly];
  const rules = touches.map((touch): Omit<PermissionRule, 'decision'> => {
    if (touch.action === 'read' || touch.action === 'write')
      return {
        tool: escaped(tool),
        action: touch.action,
        path: escaped(touch.path) + (touch.isDeep ? '/**' : ''),
      };
    return exactly;
  });
  return rules.filter(
    (rule, index) => rules.findIndex((one) => JSON.stringify(one) === JSON.stringify(rule)) === index,
  );
}

function exactValue([name, value]: readonly [string, unknown]): readonly [string, unknown] {
  return [name, typeof value === 'string' ? value.replace(/[*\\]/g, '\\$&') : value];
}

/** As a pattern that fits nothing else. */
function escaped(text: string): string {
  return text.replace(/[*?[\]{}\\]/g, '\\$&');
}
