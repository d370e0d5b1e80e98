import type { PolicyRequest } from '../../contract/call.js';
import type { ResourceAccess } from '../../contract/touch.js';
import { errorMessage } from '../../kernel/error-message.js';
import { isRecord } from '../../kernel/json.js';
import { visibleLine } from '../../kernel/visible-text.js';
import type { PermissionRule } from './permission-rule.js';

/** Fails closed: a tool that cannot state what it would access accesses what is unknown. */
export async function accessOf({
  tool,
  arguments: args,
  context,
}: PolicyRequest): Promise<readonly ResourceAccess[] | 'as annotated'> {
  if (tool.touches === undefined) return 'as annotated';
  let problem = '';
  try {
    const stated: unknown = await tool.touches(args, context);
    if (stated === 'as annotated') return stated;
    if (Array.isArray(stated) && stated.every(isAccess)) return stated;
  } catch (error) {
    problem = `: ${errorMessage(error)}`;
  }
  return [{ action: 'unknown', why: `the tool could not say what it would touch${problem}` }];
}

function isAccess(value: unknown): value is ResourceAccess {
  if (!isRecord(value)) return false;
  const { action, path, words, mentions = [], absolute = '', url, why } = value;
  const isText = (one: unknown): boolean => typeof one === 'string';
  if (action === 'read' || action === 'write') return isText(path) && isText(absolute);
  if (action === 'run')
    return (
      Array.isArray(words) &&
      words.every((one) => one === undefined || isText(one)) &&
      Array.isArray(mentions) &&
      mentions.every(isText)
    );
  return action === 'open' ? isText(url) : action === 'unknown' && isText(why);
}

/** What a call would do, for people: `writes 'src/a.ts'`. Nothing in it is hidden, and it stays on its line. */
export function describeAccess(access: ResourceAccess): string {
  if (access.action === 'run') return `runs ${quoted(access.words.map((word) => word ?? '…').join(' '))}`;
  if (access.action === 'open') return `opens ${quoted(access.url)}`;
  if (access.action === 'unknown') return 'does what cannot be told before';
  const verb = access.action === 'read' ? 'reads' : 'changes';
  return `${verb} ${quoted(access.absolute ?? access.path)}${access.isDeep ? ' and what is in it' : ''}`;
}

const MOST_CHARACTERS = 200;

function quoted(text: string): string {
  const seen = visibleLine(text);
  return `'${seen.length > MOST_CHARACTERS ? `${seen.slice(0, MOST_CHARACTERS)}…` : seen}'`;
}

/**
 * The rules that an approval of a call stands for where it is to hold again: those very paths, and for everything else
 * the very same call.
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
  accesses: readonly ResourceAccess[],
): readonly Omit<PermissionRule, 'decision'>[] {
  const exact = Object.entries(args).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.replace(/[*\\]/g, '\\$&') : value,
  ]);
  const sameCall = { tool: escaped(tool), arguments: Object.fromEntries(exact) };
  const rules = accesses.map((access): Omit<PermissionRule, 'decision'> => {
    if (access.action !== 'read' && access.action !== 'write') return sameCall;
    const path = escaped(access.path) + (access.isDeep ? '/**' : '');
    return { tool: escaped(tool), action: access.action, path };
  });
  const byText = new Map(rules.map((rule) => [JSON.stringify(rule), rule]));
  return rules.length === 0 ? [sameCall] : [...byText.values()];
}

/** As a pattern that fits nothing else. */
function escaped(text: string): string {
  return text.replace(/[*?[\]{}\\]/g, '\\$&');
}
