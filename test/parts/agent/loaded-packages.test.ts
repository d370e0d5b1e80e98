import { pathToFileURL } from 'node:url';
import { expect, test } from '@jest/globals';
import { builtFile } from '../../processes/built-file.js';
import { outputOfNode } from '../../processes/run-node.js';
import { ROOT } from '../../structure/repository.js';

/** Packages that only one optional part each needs. */
const BEHIND = [
  'acorn',
  'diff',
  'unbash',
  'ipaddr.js',
  'yaml',
  'openai',
  'pg',
  '@modelcontextprotocol',
  '@opentelemetry',
];

/** Those of these packages that a process has loaded after it created the agent. */
function loadedBy(options: object): readonly string[] {
  const entryPoint = pathToFileURL(builtFile('dist/src/toolbox/agent/index.js')).href;
  const program = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    const { createAgent } = await import(${JSON.stringify(entryPoint)});
    const agent = await createAgent({ provider: 'offline', model: 'offline', ...${JSON.stringify(options)} });
    await agent.close();
    const behind = ${JSON.stringify(BEHIND)};
    console.log(JSON.stringify(behind.filter((name) => loaded.some((url) => url.includes('/node_modules/' + name + '/')))));
  `;
  const args = ['--input-type=module', '--no-warnings', '--eval', program];
  return JSON.parse(outputOfNode(args, { folder: ROOT }));
}

test('createAgent loads only the packages of the parts that its options name', () => {
  expect(loadedBy({})).toEqual([]);
  expect(loadedBy({ toolboxes: ['files'] })).toEqual(['diff']);
  expect(loadedBy({ toolboxes: ['shell'] })).toEqual(['unbash']);
  expect(loadedBy({ toolboxes: ['web', 'tasks'] })).toEqual(['ipaddr.js']);
  expect(loadedBy({ provider: { openai: { apiKey: 'none' } } })).toEqual(['openai']);
  expect(loadedBy({ telemetry: 'opentelemetry' })).toEqual(['@opentelemetry']);
});
