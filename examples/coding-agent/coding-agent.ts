import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ApprovalAnswer, ConversationEvent, LLMProvider, PendingCall, ToolLoopResult } from 'toolwright';
import { createAgent } from 'toolwright/agent';

/** The prompt of the agent. */
const TASK = 'A test of this project fails. Find out why, and repair it.';

/** The options of a run. */
export interface CodingAgentOptions {
  readonly folder: string;
  readonly provider: LLMProvider;
  readonly model: string;
  /** Decides about each call that the permissions do not allow. */
  readonly ask: (call: PendingCall) => Promise<Omit<ApprovalAnswer, 'id'>>;
  readonly show?: (event: ConversationEvent) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Lets an agent repair the failing tests of a project. `agent.json` configures the agent. */
export async function repairTests(options: CodingAgentOptions): Promise<ToolLoopResult> {
  const { folder, provider, model, ask, show, signal } = options;
  await using agent = await createAgent({
    configFile: join(exampleFolder(), 'agent.json'),
    // The project's own file can forbid more, but never allow more.
    folderConfigFile: join(folder, '.coding-agent.json'),
    folder,
    provider,
    model,
  });
  const conversation = agent.conversation();
  if (show !== undefined) conversation.subscribe(show);
  const turn = signal === undefined ? {} : { signal };
  let run = await conversation.prompt(TASK, turn);
  while (run.status === 'suspended') {
    const answers: ApprovalAnswer[] = [];
    for (const call of conversation.pending) answers.push({ id: call.id, ...(await ask(call)) });
    run = await conversation.answer(answers, turn);
  }
  return run;
}

/** The folder of this example, also for the compiled file, which is in another folder. */
export function exampleFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return join(folder, 'examples', 'coding-agent');
}
