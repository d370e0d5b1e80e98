import type { Wait } from '../contract/suspension.js';
import type { ToolContext } from '../contract/tool-context.js';
import type { PermittedCall } from './permitted-call.js';
import { type Limits, withinLimits } from './unless-aborted.js';

/** What a call waits for before its body may run; `undefined` where it may. */
export async function gateOf(
  permitted: PermittedCall,
  context: ToolContext,
  limits: Limits,
): Promise<Wait | undefined> {
  const { tool, call } = permitted;
  if (call.journal?.approved === undefined && (await needsApproval(permitted, context, limits)))
    return { kind: 'approval', index: 0 };
  return tool.execution === 'client' ? { kind: 'client', index: 0 } : undefined;
}

/** Fails closed: only a plain no, of the author or of the tool's own function, does without an approval. */
async function needsApproval(
  { tool, checked, log }: PermittedCall,
  context: ToolContext,
  limits: Limits,
): Promise<boolean> {
  const { approval } = tool;
  if (typeof approval !== 'function') return approval !== undefined && approval !== false;
  try {
    return (await withinLimits(approval(checked, context), limits)) !== false;
  } catch (error) {
    log.ignored('The approval function of a tool gave no answer; the call needs an approval', { error });
    return true;
  }
}

/** Why a call that waits for this cannot go on where nobody can be asked. */
export function refusalOf(tool: string, { kind }: Wait): string {
  return kind === 'client'
    ? `The tool '${tool}' is executed by the client; it cannot run here.`
    : `The tool '${tool}' needs an approval, and nobody can give it here; it was not run.`;
}
