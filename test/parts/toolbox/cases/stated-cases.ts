import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import {
  type CallScope,
  resumeToolLoop,
  runToolLoop,
  type ToolPolicy,
  ToolRegistry,
  type ToolResult,
} from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { fileTools } from 'toolwright/toolbox/files';
import { Permissions, type PermissionsOptions } from 'toolwright/toolbox/permissions';
import { LocalShell, ShellTools, shellTools } from 'toolwright/toolbox/shell';

/**
 * Behaviours that the tests of two other toolboxes specify, sipeed/picoclaw and germanamz/shelly, both in Go: the
 * number of their tests for each, and what applies here. Only the behaviour is theirs, not the code.
 */
interface StatedCase {
  readonly what: string;
  readonly picoclaw?: number;
  readonly shelly?: number;
  /** Why the behaviour differs here; `run` shows how. */
  readonly differs?: string;
  run(place: Place): Promise<void> | void;
}

/** A folder with the tools for it, and another folder outside. */
export class Place {
  readonly root = mkdtempSync(join(tmpdir(), 'stated-'));
  readonly outside = mkdtempSync(join(tmpdir(), 'stated-outside-'));
  readonly shell = new LocalShell({ folder: this.root });
  readonly shellTools = new ShellTools(this.shell);
  readonly tools = new ToolRegistry().register(...fileTools({ root: this.root }), ...shellTools(this.shell));

  /** Writes files: `{ 'a/b.txt': 'text' }`. */
  has(files: Readonly<Record<string, string | Uint8Array>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      writeFileSync(join(this.root, path), text);
    }
  }

  /** A link that leads outside. */
  links(name: string, to = this.outside): void {
    symlinkSync(to, join(this.root, name));
  }

  text(path: string): string {
    return readFileSync(join(this.root, path), 'utf8');
  }

  call(name: string, args: object, scope: CallScope = {}): Promise<ToolResult> {
    return this.tools.executeWithContext(name, args, scope);
  }

  async succeeds(name: string, args: object): Promise<string> {
    const { isError, forLLM } = await this.call(name, args);
    expect({ isError, forLLM }).toMatchObject({ isError: false });
    return forLLM;
  }

  async fails(name: string, args: object): Promise<string> {
    const { isError, forLLM } = await this.call(name, args);
    expect({ isError, forLLM }).toMatchObject({ isError: true });
    return forLLM;
  }

  /** The decision for a command, by default in mode auto. */
  async judged(command: string, options: PermissionsOptions = { mode: 'auto' }): Promise<string> {
    const tool = this.tools.offered('run_command');
    if (tool === undefined) throw new Error('there is no shell');
    const context = { conversationId: 'c' } as never;
    return (await new Permissions(options).explain({ tool, arguments: { command }, context })).decision;
  }

  /** A call in a run under a policy; an approval that it asks for is answered. */
  async answered(policy: ToolPolicy, [name, args]: readonly [string, object], isApproved: boolean) {
    const provider = new ScriptedProvider([
      { toolCalls: [{ name, arguments: args }] } as never,
      { content: 'ok' },
    ]);
    const config = { provider, model: 'm', tools: this.tools, policy };
    const run = await runToolLoop(config, [{ role: 'user', content: 'go' }], { conversationId: 'c' });
    if (run.status !== 'suspended') return { isAsked: false, result: run.toolCalls[0]?.result };
    const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: isApproved }) as never);
    const done = await resumeToolLoop(config, run.state, answers, { conversationId: 'c' });
    return { isAsked: true, result: done.toolCalls[0]?.result };
  }

  async remove(): Promise<void> {
    await this.shellTools.dispose();
    for (const folder of [this.root, this.outside]) rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs the cases of one kind and compares their number with the documentation. */
export function testStatedCases(
  of: string,
  cases: readonly StatedCase[],
  expected: { readonly picoclaw: number; readonly shelly: number; readonly differ: number },
): void {
  const places: Place[] = [];
  afterEach(async () => {
    for (const place of places.splice(0)) await place.remove();
  });
  afterAll(() => expect(places).toEqual([]));
  const title = ({ what, differs }: StatedCase): string =>
    differs === undefined ? what : `${what} (not here: ${differs})`;
  describe(of, () => {
    test.each(cases.map((stated) => [title(stated), stated] as const))('%s', async (_title, stated) => {
      const place = new Place();
      places.push(place);
      await stated.run(place);
    });

    test('the numbers of cases and of differences match the documentation', () => {
      const sum = (count: (stated: StatedCase) => number) => cases.reduce((all, one) => all + count(one), 0);
      expect({
        picoclaw: sum(({ picoclaw = 0 }) => picoclaw),
        shelly: sum(({ shelly = 0 }) => shelly),
        differ: sum(({ picoclaw = 0, shelly = 0, differs }) =>
          differs === undefined ? 0 : picoclaw + shelly,
        ),
      }).toEqual(expected);
    });
  });
}
