import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WrittenTests } from './options.js';
import type { Recording } from './recording.js';
import type { GivenReply } from './watched-runs.js';

/** A test as a file. */
interface WrittenTest {
  readonly name: string;
  readonly text: string;
}

const SETUP = "// Where the tools of the test come from.\nimport { tools } from './tools.js';";

/** A Jest test that makes a recorded run again, by a model that says what was recorded, and expects the same of it. */
export function writeTest(
  recording: Recording,
  { setup = SETUP, scopeOf }: Partial<Pick<WrittenTests, 'setup' | 'scopeOf'>> = {},
): WrittenTest {
  const { replies, messages, answers, outcome } = recording;
  const waits = answers.filter(({ length }) => length > 0);
  const loop = waits.length > 0 ? 'resumeToolLoop, runToolLoop' : 'runToolLoop';
  const scope = scopeText(recording, scopeOf);
  const script = outcome.status === 'completed' || outcome.status === 'suspended' ? replies : ended(replies);
  const text = [
    "import { expect, test } from '@jest/globals';",
    `import { ${loop} } from 'toolwright';`,
    "import { ScriptedProvider } from 'toolwright/testing';",
    setup.trim(),
    '',
    `test(${literal(testName(recording), 0)}, async () => {`,
    `  const provider = new ScriptedProvider(${literal(script, 1)});`,
    "  const config = { provider, model: 'scripted', tools };",
    `  const messages = ${literal(messages, 1)} as const;`,
    `  ${waits.length > 0 ? 'let' : 'const'} run = await runToolLoop(config, messages${scope});`,
    ...waits.map((wave) => resumption(wave, scope)),
    '  const calls = run.toolCalls.map(({ name, status, result }) => ({ name, status, forLLM: result.forLLM }));',
    `  expect(calls).toEqual(${literal(
      outcome.calls.map(({ name, status, forLLM }) => ({ name, status, forLLM })),
      1,
    )});`,
    ...(outcome.status === 'completed' || outcome.status === 'suspended'
      ? [`  expect(run.status).toBe(${literal(outcome.status, 0)});`, '  provider.assertUsedUp();']
      : []),
    '});',
    '',
  ].join('\n');
  return { name: `${fileName(recording)}.test.ts`, text };
}

/** The scope of the run, as one more argument; of a request, the setup makes it. */
function scopeText({ scope: { request, ...scope } }: Recording, scopeOf: string | undefined): string {
  if (request !== undefined && scopeOf !== undefined)
    return `, ${scopeOf}(${literal(request, 1)}, ${literal(scope, 1)})`;
  return Object.keys(scope).length > 0 ? `, ${literal(scope, 1)}` : '';
}

/** The answers of one wait, in the order in which they are waited for. */
function resumption(wave: readonly GivenReply[], scope: string): string {
  const said = wave.map(({ tool: _, ...answer }) => answer);
  return [
    `  {`,
    `    const said = ${literal(said, 2)};`,
    '    const answers = (run.pending ?? []).map(({ id }, index) => ({ id, ...said[index]! }));',
    `    run = await resumeToolLoop(config, run.state, answers${scope});`,
    '  }',
  ].join('\n');
}

/** A run that did not complete was asked on: the script must not end before it does. */
function ended(replies: Recording['replies']): Recording['replies'] {
  return [...replies, { content: 'The end.' }];
}

function testName({ title, outcome }: Recording): string {
  const calls = outcome.calls.map(({ name }) => name);
  return `${title}: ${calls.length === 0 ? 'no call' : calls.join(', ')} as recorded`;
}

function fileName({ title }: Recording): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? ['recorded'];
  return words.slice(0, 6).join('-');
}

/** JSON in which nothing can end the text that it stands in; at a depth of indentation. */
function literal(value: unknown, depth: number): string {
  const text = JSON.stringify(value, null, 2) ?? 'undefined';
  return text.replaceAll('\n', `\n${'  '.repeat(depth)}`).replace(/[\u2028\u2029]/g, codeOf);
}

function codeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16)}`;
}

/** Writes a test into its folder, under a name that is free; gives the path. */
export async function saveTest({ name, text }: WrittenTest, { folder }: WrittenTests): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (let number = 1; ; number += 1) {
    const path = join(folder, number === 1 ? name : name.replace('.test.ts', `-${number}.test.ts`));
    const isTaken = await access(path).then(
      () => true,
      () => false,
    );
    if (isTaken) continue;
    await writeFile(path, text, { flag: 'wx' });
    return path;
  }
}

/** The same call for others: a test does it from the inside, these from the outside. */
export function callTexts(
  { tool, args }: { readonly tool: string; readonly args: unknown },
  url: string,
): { readonly curl: string; readonly scripted: string } {
  const body = JSON.stringify({ tool, arguments: args });
  // A quote cannot stand in a quoted text of a shell.
  const quoted = body.replaceAll("'", `'\\''`);
  return {
    curl: [
      `curl -X POST '${url}api/calls' \\`,
      "  -H 'content-type: application/json' \\",
      '  -H "authorization: Bearer $TOOLWRIGHT_INSPECTOR_TOKEN" \\',
      `  -d '${quoted}'`,
    ].join('\n'),
    scripted: `{ toolCalls: [{ name: ${literal(tool, 0)}, arguments: ${literal(args, 0)} }] }`,
  };
}
