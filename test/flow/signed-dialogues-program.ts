// Resumes a run that another process has suspended. The input: dialogue, base URL and state.
import { text } from 'node:stream/consumers';
import { type RunState, resumeToolLoop } from 'toolwright';
import { look, SIGNED_DIALOGUES } from './signed-dialogues.js';

interface Order {
  readonly dialogue: string;
  readonly baseURL: string;
  readonly state: RunState;
}

const { dialogue, baseURL, state } = JSON.parse(await text(process.stdin)) as Order;
const asked = SIGNED_DIALOGUES[dialogue]?.ask(baseURL);
if (asked === undefined) throw new Error(`there is no dialogue ${dialogue}`);
const answers = state.pending.map(({ id }) => ({ id, approved: true }));
const { status, content, messages } = await resumeToolLoop({ ...asked, tools: [look] }, state, answers);
process.stdout.write(JSON.stringify({ status, content, results: messages.at(-2)?.content }));
