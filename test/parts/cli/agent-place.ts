import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { delta, events, LoopbackServer } from '../providers/loopback-server.js';
import { newFolder } from '../toolbox/files/folders.js';

type Call = readonly [tool: string, args: object];
/** What the model says to the last message: a text, or calls. */
type Reply = (last: { readonly role: string; readonly content: string }) => string | readonly Call[];

/** A server that speaks Chat Completions, whose model does what a test says. */
export function modelThat(reply: Reply): Promise<LoopbackServer> {
  let calls = 0;
  return LoopbackServer.start((response, request) => {
    const messages = request.body.messages as { role: string; content: string }[];
    const said = reply(messages.at(-1) ?? { role: '', content: '' });
    const usage = { choices: [], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } };
    if (typeof said === 'string') {
      const words = said.split(/(?<= )/).map((content) => delta({ content }));
      events([...words, delta({}, 'stop'), usage])(response, request);
      return;
    }
    const tool_calls = said.map(([name, args], index) => {
      calls += 1;
      const call = { name, arguments: JSON.stringify(args) };
      return { index, id: `call_${calls}`, type: 'function', function: call };
    });
    events([delta({ tool_calls }), delta({}, 'tool_calls'), usage])(response, request);
  });
}

/** Calls what the user writes as `tool {…}`, and says what came of it. */
export const obedient: Reply = ({ role, content }) => {
  if (role === 'tool') return `It says: ${content}`;
  const [, tool, args] = /(\w+) (\{.*\})$/s.exec(content) ?? [];
  return tool === undefined ? `You said: ${content}` : [[tool, JSON.parse(args ?? '{}')]];
};

/** A folder that an agent works in, and where its state is kept. */
export interface Place {
  readonly folder: string;
  readonly state: string;
}

export function newPlace(files = {}): Place {
  return { folder: newFolder(files), state: newFolder() };
}

/** What stands in a file of its folder. */
export const textOf = ({ folder }: Place, path: string) => readFileSync(join(folder, path), 'utf8');
/** What an obedient model is told to edit. */
export const EDIT = 'edit_file {"path":"a.txt","edits":[{"oldText":"two","newText":"three"}]}';
