import { afterEach, describe, expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';
import {
  followMcpTools,
  type McpToolCandidate,
  type McpToolChange,
  type McpToolsOptions,
} from 'toolwright/mcp';
import { connectClient, ERAS, listen } from './mcp-connections.js';

const plain = (name: string, description = `Does ${name}`) =>
  defineTool({ name, description, execute: () => `${name} done` });

/** The reports so far, with a way to wait for one of them. */
class Reports {
  readonly all: string[] = [];
  #next = Promise.withResolvers<void>();

  note(report: string): void {
    this.all.push(report);
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  async until(report: string): Promise<void> {
    while (!this.all.includes(report)) await this.#next.promise;
  }
}

/** Answers each request for an approval later, or never. */
class Approver {
  readonly reports = new Reports();
  readonly #answers = new Map<string, (isApproved: boolean) => void>();

  readonly options: McpToolsOptions = {
    approve: (candidate) => this.#ask(candidate),
    onChange: ({ kind, name, candidate }) =>
      this.reports.note(`${kind} ${name}: ${candidate?.definition.description}`),
  };

  answer(description: string, isApproved: boolean): void {
    this.#answers.get(description)?.(isApproved);
  }

  #ask({ definition: { description = '' } }: McpToolCandidate): boolean | Promise<boolean> {
    if (description.startsWith('Does')) return true;
    return new Promise((resolve) => {
      this.#answers.set(description, resolve);
      this.reports.note(`asked: ${description}`);
    });
  }
}

const closing: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close();
});

describe.each(Object.entries(ERAS))('with %s', (_era, options) => {
  async function begin(...names: readonly string[]) {
    const remote = new ToolRegistry().register(...names.map((name) => plain(name)));
    const own = new ToolRegistry();
    const approver = new Approver();
    const listening = await listen(remote);
    const client = await connectClient(listening.url, { options });
    closing.push(client, listening);
    return { remote, own, approver, client };
  }

  test('an approval that is never answered blocks no other tool, and is dropped on close', async () => {
    const { remote, own, approver, client } = await begin('a');
    const following = await followMcpTools(own, client, approver.options);
    remote.register(plain('pay', 'Pays'), plain('b'));
    await approver.reports.until('added b: Does b');
    remote.register(plain('c'), plain('a', 'Does a better')).unregister('b');
    await approver.reports.until('added c: Does c');
    expect(own.list()).toEqual(['a', 'c']);

    const refreshing = following.refresh();
    await following.close();
    await refreshing;
    approver.answer('Pays', true);
    await new Promise(setImmediate);
    expect(own.list()).toEqual(['a', 'c']);
    expect(approver.reports.all.filter((report) => report.includes('Pays'))).toEqual(['asked: Pays']);
  });

  test('the first tools are registered in the order in which they are approved', async () => {
    const { remote, own, approver, client } = await begin('a', 'b');
    remote.register(plain('a', 'Pays'));
    const beginning = followMcpTools(own, client, approver.options);
    await approver.reports.until('added b: Does b');
    expect(own.list()).toEqual(['b']);
    approver.answer('Pays', true);
    closing.unshift(await beginning);
    expect(own.list()).toEqual(['b', 'a']);
  });

  test('an answer applies only to the definition that was asked about', async () => {
    const { remote, own, approver, client } = await begin('pay');
    closing.unshift(await followMcpTools(own, client, approver.options));
    remote.register(plain('pay', 'Pays'));
    await approver.reports.until('asked: Pays');
    remote.register(plain('pay', 'Pays twice'));
    await approver.reports.until('asked: Pays twice');
    // The approved definition stays until there is an answer.
    expect(own.offered('pay')?.description).toBe('Does pay');

    approver.answer('Pays', true);
    await new Promise(setImmediate);
    expect(own.offered('pay')?.description).toBe('Does pay');
    approver.answer('Pays twice', false);
    await approver.reports.until('withheld pay: Pays twice');
    expect(own.list()).toEqual([]);
  });

  test('approving a tool that was removed or is unchanged again has no effect', async () => {
    const { remote, own, approver, client } = await begin('pay');
    const following = await followMcpTools(own, client, approver.options);
    closing.unshift(following);
    remote.register(plain('pay', 'Pays'), plain('get', 'Gets'));
    await approver.reports.until('asked: Gets');
    remote.register(plain('pay')).unregister('get');
    await following.refresh();
    approver.answer('Pays', true);
    approver.answer('Gets', true);
    await new Promise(setImmediate);
    expect(own.tools().map(({ description }) => description)).toEqual(['Does pay']);
  });
});

test('a listener that throws still receives every change, and followMcpTools rejects with its error', async () => {
  const remote = new ToolRegistry().register(plain('a'), plain('b'));
  const listening = await listen(remote);
  const client = await connectClient(listening.url);
  const own = new ToolRegistry();
  const told: string[] = [];
  const onChange = ({ kind, name }: McpToolChange): void => {
    told.push(`${kind} ${name}`);
    throw new Error('the listener is broken');
  };
  closing.push(client, listening);
  await expect(followMcpTools(own, client, { onChange })).rejects.toThrow('the listener is broken');
  expect(told).toEqual(['added a', 'added b']);
});
