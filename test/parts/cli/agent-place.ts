import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { delta, events, LoopbackServer } from '../providers/loopback-server.js';
import { newFolder } from '../toolbox/files/folders.js';

type Call = readonly [tool: string, args: object];
/** The model's reply to the last message: a text, or calls. */
type Reply = (last: { readonly role: string; readonly content: string }) => string | readonly Call[];

/** A Chat Completions server whose model replies as a test defines. */
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

/** Makes the calls that the user writes as `tool {…}`, and repeats the results. */
export const obedient: Reply = ({ role, content }) => {
  if (role === 'tool') return `It says: ${content}`;
  const [, tool, args] = /(\w+) (\{.*\})$/s.exec(content) ?? [];
  return tool === undefined ? `You said: ${content}` : [[tool, JSON.parse(args ?? '{}')]];
};

/** The folder in which an agent works, and the folder of its state. */
export interface Place {
  readonly folder: string;
  readonly state: string;
}

export function newPlace(files = {}): Place {
  return { folder: newFolder(files), state: newFolder() };
}

export const textOf = ({ folder }: Place, path: string) => readFileSync(join(folder, path), 'utf8');
/** The edit that the obedient model is asked to make. */
export const EDIT = 'edit_file {"path":"a.txt","edits":[{"oldText":"two","newText":"three"}]}';
