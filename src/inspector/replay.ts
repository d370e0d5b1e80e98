import type { ToolRegistry } from '../call/tool-registry.js';
import type { Answer, CallScope, PendingCall } from '../contract/call.js';
import type { LLMProvider, LLMResponse } from '../contract/llm-provider.js';
import type { ToolLoopResult } from '../loop/events.js';
import { resumeToolLoop, runToolLoop } from '../loop/run.js';
import { type Outcome, outcomeOf, type RecordedReply, type Recording } from './recording.js';
import type { GivenReply } from './watched-runs.js';

/** What a replay is made with. */
interface ReplaySource {
  readonly registry: ToolRegistry;
  readonly scope: CallScope;
  /** Who is asked instead of the recording. */
  readonly model?: { readonly provider: LLMProvider; readonly model: string };
}

/** What came of a recording now. */
interface Replay {
  readonly runId: string;
  readonly before: Outcome;
  readonly after: Outcome;
}

/** Makes a recorded run again, over the tools of now: their effects take place again. */
export async function replay(recording: Recording, source: ReplaySource): Promise<Replay> {
  const {
    registry,
    scope,
    model = { provider: new RecordedModel(recording.replies), model: 'recorded' },
  } = source;
  const runId = crypto.randomUUID();
  const config = { ...model, tools: registry, runId, providerRetries: 0, loopGuard: false } as const;
  let run = await runToolLoop(config, recording.messages, scope);
  for (const given of recording.answers) {
    const answers = answersFor(run, given);
    if (answers === undefined) break;
    run = await resumeToolLoop(config, run.state, answers, scope);
  }
  return { runId, before: recording.outcome, after: outcomeOf(run.status, run.content, run.toolCalls) };
}

/** The recorded answers for what a run waits for now; nothing where they do not fit it. */
function answersFor(
  { status, pending = [] }: ToolLoopResult,
  given: readonly GivenReply[],
): readonly Answer[] | undefined {
  if (status !== 'suspended' || given.length !== pending.length) return undefined;
  const answers = pending.flatMap((wait, index) => answerFor(wait, given[index]) ?? []);
  return answers.length === pending.length ? answers : undefined;
}

function answerFor({ id, tool }: PendingCall, given: GivenReply | undefined): Answer | undefined {
  if (given?.tool !== tool) return undefined;
  const { tool: _, ...said } = given;
  return { id, ...said };
}

/** A model that says what was recorded, reply by reply. */
class RecordedModel implements LLMProvider {
  readonly #replies: RecordedReply[];

  constructor(replies: readonly RecordedReply[]) {
    this.#replies = [...replies];
  }

  async chat(): Promise<LLMResponse> {
    const reply = this.#replies.shift();
    if (reply === undefined) throw new Error('the recording ends here: the model was asked no further');
    const { content, toolCalls = [] } = reply;
    return {
      content,
      toolCalls: toolCalls.map(({ id = '', name, arguments: args = {} }) => ({
        ...{ id, name, arguments: args as string },
      })),
      finishReason: toolCalls.length > 0 ? 'tool_calls' : 'stop',
    };
  }
}
