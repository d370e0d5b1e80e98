import type { ToolLoopResult } from 'toolwright';

/** The result of a run on one line; an error has a name, a code and a message. */
export function runJson(run: ToolLoopResult): string {
  return JSON.stringify(run, (_key, value: unknown) => {
    if (!(value instanceof Error)) return value;
    const { name, message } = value;
    return { name, ...('code' in value ? { code: value.code } : {}), message };
  });
}
