import type { CheckedArguments } from '../call/edited-call.js';
import { ToolRegistry } from '../call/tool-registry.js';
import type { Answer } from '../contract/call.js';
import type { RunState, StoredCall, StoredWaitingCall } from '../contract/run-state.js';
import type { ToolDefinition } from '../contract/tool.js';
import { applyAnswers, invalidAnswers, withCalls } from './apply-answers.js';
import { toolsOfAgents } from './inner-runs.js';
import type { RunStart } from './loop-run.js';
import { checkOwner, type ResumeConfig, type ResumeOptions } from './options.js';
import { isSignedWith, validateState } from './suspend.js';

/** With what a run goes on. */
export interface Resumption extends ResumeOptions {
  readonly answers: readonly Answer[];
  /** The state is this process's own or out of a store: nobody else could change it. */
  readonly isCertain?: boolean;
}

/** What of a config a resume needs before anything runs. */
type ResumedConfig = { readonly [Part in 'stateSecret' | 'tools']?: ResumeConfig[Part] | undefined };

/**
 * A run that goes on from its state, with the answers in its calls; a promise where arguments were edited, because
 * they are checked first.
 *
 * @throws ToolwrightError `InvalidState` (515), `RunNotAllowed` (523) and `InvalidAnswer` (514), which names every
 *   answer that fits nothing.
 */
export function resumeWith(
  config: ResumedConfig,
  given: unknown,
  resumption: Resumption,
): RunStart | Promise<RunStart> {
  const { answeredBy, scope = {}, model, isCertain = false } = resumption;
  const secret = config?.stateSecret;
  const { state } = validateState(given, secret);
  const isKnown = isCertain || isSignedWith(state, secret);
  const isForged = !isKnown && state.signature !== undefined;
  checkOwner({ owner: state.owner, isCertain: isKnown, isForged }, scope);
  const answered = applyAnswers(state, { answers: resumption.answers, answeredBy });
  const startWith = (calls: readonly StoredCall[]): RunStart => ({
    suspended: { ...withCalls(state, calls), ...(model === undefined ? {} : { model }) },
  });
  return hasUncheckedEdits(answered)
    ? checkEdits(answered, toolsOf(config, state)).then(startWith)
    : startWith(answered);
}

function hasUncheckedEdits(calls: readonly StoredCall[]): boolean {
  return calls.some((call) => {
    if (call.status !== 'waiting') return false;
    const states = (call.inner ?? []).flatMap(({ state }) => state ?? []);
    return isUncheckedEdit(call) || states.some(({ open }) => hasUncheckedEdits(open.calls));
  });
}

function isUncheckedEdit({ journal: { edited } }: StoredWaitingCall): boolean {
  return edited !== undefined && edited.isChecked === undefined;
}

/** What the run was offered and is given now: nobody checks with tools that it may not use. */
function toolsOf({ tools }: ResumedConfig, { tools: names }: RunState): ToolRegistry | undefined {
  if (tools === undefined) return undefined;
  const registry = tools instanceof ToolRegistry ? tools : new ToolRegistry().register(...tools);
  return names === undefined ? registry : registry.view({ allow: [...names] });
}

/** Arguments that were edited, as their tools will get them. Whoever edited them hears of all that is wrong. */
async function checkEdits(
  calls: readonly StoredCall[],
  tools: ToolRegistry | undefined,
): Promise<readonly StoredCall[]> {
  const faults: string[] = [];
  const checked = await checkedCalls(calls, { tools, faults });
  if (faults.length > 0) throw invalidAnswers(faults);
  return checked;
}

/** With what edits are checked. */
interface Checking {
  readonly tools: ToolRegistry | undefined;
  readonly faults: string[];
}

function checkedCalls(calls: readonly StoredCall[], checking: Checking): Promise<readonly StoredCall[]> {
  return Promise.all(
    calls.map(async (call) => {
      if (call.status !== 'waiting') return call;
      if (isUncheckedEdit(call)) return checkEdit(call, checking);
      if (call.inner === undefined) return call;
      const tool = checking.tools?.offered(call.name);
      const tools = tool && toolsOfAgents.get(tool);
      const inner = call.inner.map(async (run) => {
        const { state } = run;
        if (state === undefined) return run;
        return {
          ...run,
          state: withCalls(state, await checkedCalls(state.open.calls, { ...checking, tools })),
        };
      });
      return { ...call, inner: await Promise.all(inner) };
    }),
  );
}

async function checkEdit(call: StoredWaitingCall, { tools, faults }: Checking): Promise<StoredCall> {
  const { id, name, journal } = call;
  const checked = await tools?.check(name, journal.arguments);
  const problem = problemOf(checked) ?? unchangeable(tools?.offered(name));
  if (!checked?.ok || problem !== undefined) {
    faults.push(`the edited arguments of '${name}' (${id}): ${problem}`);
    return call;
  }
  const { original } = journal.edited ?? { original: journal.arguments };
  const edited = { original, isChecked: true as const };
  return { ...call, journal: { ...journal, arguments: checked.arguments, edited } };
}

/** The tool may have changed its mind since the question was asked. */
function unchangeable(tool: ToolDefinition | undefined): string | undefined {
  const decisions = typeof tool?.approval === 'object' ? tool.approval.decisions : undefined;
  return decisions === undefined || decisions.includes('edit') ? undefined : 'its tool takes no edits';
}

function problemOf(checked: CheckedArguments | undefined): string | undefined {
  if (checked === undefined) return 'they can be checked only where the tools are given';
  if (!checked.ok) return checked.problem;
  // A person means what they write: what the tool does not know is told instead of taken away.
  return checked.removed.length > 0 ? `there is no ${checked.removed.join(', ')}` : undefined;
}
