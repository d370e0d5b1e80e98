#!/usr/bin/env node
// `npm create toolwright@latest [folder] -- --template <name>`: copies a template into a new folder.
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

const TEMPLATES = {
  basic: 'tools with defineTool and as a class, run with tsx',
  nest: 'a NestJS service with approvals and a chat route',
  mcp: 'an MCP server over HTTP and stdio',
  chat: 'a chat page with Vite and useChat',
  agent: 'an agent that works in a folder',
};
const NAMES = Object.keys(TEMPLATES);
const LIST = NAMES.map((name) => `  ${name.padEnd(6)} ${TEMPLATES[name]}`).join('\n');
const HELP = `npm create toolwright@latest [folder] -- [--template <name>]

${LIST}
`;

/** An error of the command line. */
class UsageError extends Error {}

try {
  await main();
} catch (error) {
  console.error(`create-toolwright: ${error.message}`);
  const isUsage = error instanceof UsageError || String(error.code).startsWith('ERR_PARSE_ARGS');
  process.exitCode = isUsage ? 2 : 1;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { template: { type: 'string', short: 't' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) return void stdout.write(HELP);
  if (positionals.length > 1)
    throw new UsageError(`give one folder, not ${positionals.length}: ${positionals.map(quoted).join(' ')}`);
  const { folder, template } = await choose(positionals[0], values.template);
  createProject(resolve(folder), template);
  const steps = [
    `cd ${quoted(relative('', resolve(folder)) || '.')}`,
    'npm install',
    'npm start',
    'npm test',
  ];
  stdout.write(
    `Created ${folder} from the template ${template}.\n\n${steps.map((step) => `  ${step}\n`).join('')}`,
  );
}

/** Quotes an argument for a shell. */
function quoted(argument) {
  return /^[\w./\\:-]+$/.test(argument) ? argument : `"${argument}"`;
}

/** Asks for values that the command line does not contain; without a terminal, the defaults are used. */
async function choose(folder, template) {
  if (template !== undefined) checkTemplate(template);
  if (!stdin.isTTY) return { folder: folder ?? 'my-tools', template: template ?? 'basic' };
  const terminal = createInterface({ input: stdin, output: stdout });
  try {
    const chosen = folder ?? ((await terminal.question('Folder (my-tools): ')).trim() || 'my-tools');
    if (template !== undefined) return { folder: chosen, template };
    const answer = (await terminal.question(`${LIST}\nTemplate (basic): `)).trim() || 'basic';
    checkTemplate(answer);
    return { folder: chosen, template: answer };
  } finally {
    terminal.close();
  }
}

function checkTemplate(name) {
  if (!NAMES.includes(name))
    throw new UsageError(`there is no template "${name}"; use one of ${NAMES.join(', ')}`);
}

function createProject(folder, template) {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new Error(`${folder} is not empty; choose a new folder`);
  cpSync(join(import.meta.dirname, 'templates', template), folder, { recursive: true });
  // npm never packs a file named `.gitignore`.
  renameSync(join(folder, 'gitignore'), join(folder, '.gitignore'));
  const manifest = join(folder, 'package.json');
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._]+/, '');
  const { name: _, ...others } = JSON.parse(readFileSync(manifest, 'utf8'));
  writeFileSync(manifest, `${JSON.stringify({ name: name || 'my-tools', ...others }, null, 2)}\n`);
}
