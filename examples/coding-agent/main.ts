import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { ConversationEvent, PendingCall } from 'toolwright';
import { chooseModel } from './choose-model.js';
import { exampleFolder, repairTests } from './coding-agent.js';

const HELP = `node dist/examples/coding-agent/main.js [--yes] [folder]

Repairs what the tests of a project find; without a folder, those of a copy of the sample.
--yes says yes to everything that it asks.
`;

async function main(args: readonly string[]): Promise<number> {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const options = args.filter((arg) => arg.startsWith('-'));
  if (options.some((option) => option !== '--yes') || names.length > 1) {
    process.stdout.write(HELP);
    return options.includes('--help') ? 0 : 2;
  }
  const { provider, model, isRehearsed } = await chooseModel(process.env);
  const [named] = names;
  if (isRehearsed && named !== undefined) {
    process.stderr.write('coding-agent: a folder of your own needs a model: set OPENAI_API_KEY\n');
    return 1;
  }
  const folder = named === undefined ? await copySample() : resolve(named);
  process.stdout.write(`In ${folder}\n`);
  using person = options.includes('--yes') ? { ask: yes, [Symbol.dispose]: () => {} } : new Person();
  const run = await repairTests({ folder, provider, model, ask: person.ask, show });
  if (run.status === 'completed') return 0;
  process.stderr.write(`coding-agent: the run ended as ${run.status}: ${run.error?.message ?? ''}\n`);
  return 1;
}

async function copySample(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'coding-agent-'));
  await cp(join(exampleFolder(), 'sample'), folder, { recursive: true });
  return folder;
}

function show(event: ConversationEvent): void {
  if (event.type === 'text-delta') process.stdout.write(event.text);
  if (event.type === 'call-start')
    process.stdout.write(`\n· ${event.tool} ${JSON.stringify(event.arguments)}\n`);
  if (event.type === 'call-end') process.stdout.write(`  ${event.record.status}\n`);
  if (event.type === 'turn-end') process.stdout.write('\n');
}

async function yes(call: PendingCall): Promise<{ readonly approved: true }> {
  describe(call);
  return { approved: true };
}

/** The user at the terminal. Every answer except `y` refuses, and so does the end of the input. */
class Person implements Disposable {
  readonly #terminal = createInterface({ input: process.stdin, output: process.stdout });
  readonly #left = new Promise<string>((leave) => this.#terminal.once('close', () => leave('')));

  readonly ask = async (call: PendingCall): Promise<{ readonly approved: boolean }> => {
    describe(call);
    const answer = await Promise.race([this.#left, this.#terminal.question('Yes? [y/N] ').catch(() => '')]);
    return { approved: /^y(es)?$/i.test(answer.trim()) };
  };

  [Symbol.dispose](): void {
    this.#terminal.close();
  }
}

/** The description of an approval ends with the diff of an edit. */
function describe({ tool, description, message }: PendingCall): void {
  const lines = [`? ${tool}`, message, description].filter((line) => line !== undefined);
  process.stdout.write(`${lines.join('\n')}\n`);
}

process.exitCode = await main(process.argv.slice(2));
