import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { ToolRegistry } from 'toolwright';
import { Permissions } from 'toolwright/toolbox/permissions';
import { type Place, testStatedCases } from './stated-cases.js';

/** Whether a `sleep` process with this number of seconds exists; each test uses another number. */
function isSleeping(seconds: number): boolean {
  return readdirSync('/proc').some((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(join('/proc', pid, 'cmdline'), 'latin1').startsWith(`sleep\0${seconds}\0`);
    } catch {
      return false;
    }
  });
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Starts a background command and returns its id; no conversation receives its end. */
async function start(place: Place, command: string): Promise<string> {
  const said = await place.succeeds('run_command', { command, background: true });
  return /command_\d+/.exec(said)?.[0] ?? '';
}

const NO_TERMINAL = 'commands have neither a terminal nor input';

testStatedCases(
  'running',
  [
    {
      what: 'the output of a command is returned, from stdout and stderr',
      ...{ picoclaw: 3, shelly: 1 },
      async run(place) {
        const told = await place.succeeds('run_command', { command: 'echo out; echo err >&2' });
        expect(told).toContain('out\n');
        expect(told).toContain('err');
      },
    },
    {
      what: 'a command that fails is an error with its exit code',
      ...{ picoclaw: 2, shelly: 1 },
      async run(place) {
        expect(await place.fails('run_command', { command: 'ls /nowhere_at_all' })).toContain('exit code');
        expect(await place.fails('run_command', { command: "sh -c 'exit 42'" })).toContain('42');
      },
    },
    {
      what: 'an unknown program and a missing command are errors',
      ...{ picoclaw: 1, shelly: 2 },
      async run(place) {
        expect(await place.fails('run_command', { command: 'nowhere_at_all' })).toContain('not found');
        await place.fails('run_command', { command: '' });
        await place.fails('run_command', {});
      },
    },
    {
      what: 'a command that takes too long is ended with its child processes, and its output is returned',
      picoclaw: 3,
      async run(place) {
        const command = 'echo before; sleep 4017 & sleep 4017';
        const told = await place.fails('run_command', { command, seconds: 1 });
        expect(told).toContain('before');
        expect(told).toContain('too long');
        await until(() => !isSleeping(4017));
      },
    },
    {
      what: 'a command runs in the chosen folder, but never outside or through a link',
      picoclaw: 3,
      async run(place) {
        place.has({ 'sub/a.txt': 'content' });
        place.links('way');
        expect(await place.succeeds('run_command', { command: 'cat a.txt', folder: 'sub' })).toContain(
          'content',
        );
        for (const folder of ['..', 'way', place.outside])
          expect(await place.fails('run_command', { command: 'pwd', folder })).toMatch(/out of|outside/);
      },
    },
    {
      what: 'long output is truncated with a note',
      picoclaw: 1,
      async run(place) {
        const told = await place.succeeds('run_command', { command: 'yes x | head -c 400000' });
        expect(told.length).toBeLessThan(100_000);
        expect(told).toMatch(/characters omitted/);
      },
    },
    {
      what: 'a background command returns at once, can be listed and read, and is ended with its child processes',
      picoclaw: 7,
      async run(place) {
        expect(await place.succeeds('list_commands', {})).toBe('No command was started in the background.');
        const id = await start(place, "echo line1; sh -c 'sleep 4019 & sleep 4019 & wait'");
        expect(await place.succeeds('list_commands', {})).toContain(`${id} (running)`);
        await until(async () =>
          (await place.succeeds('command_output', { id, all: true })).includes('line1'),
        );
        await until(() => isSleeping(4019));
        await place.succeeds('kill_command', { id });
        await until(() => !isSleeping(4019));
        expect(await place.succeeds('list_commands', {})).not.toContain('(running)');
      },
    },
    {
      what: 'output and exit code of a background command can be read after its end',
      picoclaw: 2,
      async run(place) {
        const id = await start(place, 'echo hello; echo world');
        await until(async () => !(await place.succeeds('list_commands', {})).includes('(running)'));
        const told = await place.succeeds('command_output', { id, all: true });
        expect(told).toContain('hello\nworld');
        expect(told).toContain('exit code 0');
      },
    },
    {
      what: 'a background command can receive input and have a terminal',
      picoclaw: 8,
      differs: NO_TERMINAL,
      async run(place) {
        expect(await place.succeeds('run_command', { command: 'cat; echo over' })).toContain('over');
        expect(await place.succeeds('run_command', { command: 'test -t 0 || echo none' })).toContain('none');
        expect(await place.fails('write_command', { data: 'x' })).toContain('write_command');
      },
    },
    {
      what: 'a rejected command does not run; an approval for the session lets the next command run',
      shelly: 2,
      async run(place) {
        const permissions = new Permissions({ mode: 'ask' });
        const call = ['run_command', { command: 'echo hi > a.txt' }] as const;
        const { result } = await place.answered(permissions.policy, call, false);
        expect(result?.isError).toBe(true);
        expect(await place.succeeds('list_files', {})).not.toContain('a.txt');
        permissions.remember({ command: 'echo **' }, { session: 'c' });
        const again = await place.answered(
          permissions.policy,
          ['run_command', { command: 'echo again' }],
          false,
        );
        expect([again.isAsked, again.result?.forLLM]).toEqual([false, expect.stringContaining('again')]);
      },
    },
  ],
  { picoclaw: 30, shelly: 6, differ: 8 },
);

const ANY = { rules: [{ decision: 'allow', command: '* *' }] } as const;

/** Checks the decision for each command, with a rule that allows every command. */
async function allAre(place: Place, decision: string, commands: readonly string[]): Promise<void> {
  const judged = await Promise.all(commands.map((command) => place.judged(command, ANY)));
  expect(commands.map((command, index) => `${command} → ${judged[index]}`)).toEqual(
    commands.map((command) => `${command} → ${decision}`),
  );
}

testStatedCases(
  'permissions of commands',
  [
    {
      what: 'paths out of the folder ask: by dots, attached to options, through links and from the home folder',
      picoclaw: 4,
      async run(place) {
        place.links('way');
        const commands = ['cat ../../x/y', 'cat --file=/x/y', 'cc -I/x a.c', 'echo -isystem/x/y', 'ls /tmp'];
        await allAre(place, 'ask', [...commands, 'rm -rf /', 'echo --config=way/x', 'ls ~', 'cat ~/.x']);
      },
    },
    {
      what: 'paths inside the folder do not ask, including names of three dots',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a/b-c/d.py': '' });
        await allAre(place, 'allow', ['cat a/b-c/d.py', 'ls ...', 'echo ...']);
      },
    },
    {
      what: 'file URLs are treated as paths, also next to other URLs; other URLs are not',
      picoclaw: 4,
      async run(place) {
        await allAre(place, 'ask', ['cat file:///x/y', 'curl file:///x/y', 'echo https://x/y && cat //x/y']);
        await allAre(place, 'allow', [
          `curl file://${place.root}/a.txt`,
          'curl https://example.com/x/y',
          'git clone https://example.com/x.git',
          'wget ftp://example.com; curl https://example.com',
          'echo ssh://git@example.com',
        ]);
      },
    },
    {
      what: '/dev/null can be read and written, other devices ask',
      picoclaw: 3,
      async run(place) {
        const harmless = ['echo a 2>/dev/null', 'echo a > /dev/null 2>&1', 'cat /dev/null'];
        await allAre(place, 'allow', harmless);
        const disks = ['sda', 'vda', 'nvme0n1', 'mmcblk0', 'loop0', 'dm-0', 'md0', 'sr0', 'nbd0'];
        await allAre(
          place,
          'ask',
          disks.map((disk) => `echo x > /dev/${disk}`),
        );
      },
    },
    {
      what: 'names of more than two dots lead out of the folder',
      picoclaw: 1,
      differs: 'they are ordinary names, as for the operating system',
      run: (place) => allAre(place, 'allow', ['ls .../.../', 'cat .../.../a']),
    },
    {
      what: 'some programs such as kill never run',
      picoclaw: 1,
      differs: 'rules decide which programs run, and mode ask asks about every command',
      async run(place) {
        expect(await place.judged('kill 12345')).toBe('deny');
        expect(await place.judged('kill 12345', { mode: 'ask' })).toBe('ask');
        const rules = [{ decision: 'deny', command: 'kill' }] as const;
        expect(await place.judged('env kill 12345', { mode: 'auto', rules })).toBe('deny');
      },
    },
    {
      what: 'a more specific rule makes an exception',
      picoclaw: 1,
      async run(place) {
        const rules = [
          { decision: 'ask', command: 'git push' },
          { decision: 'allow', command: 'git push origin main' },
        ] as const;
        expect(await place.judged('git push origin main', { mode: 'auto', rules })).toBe('allow');
        expect(await place.judged('git push upstream main', { mode: 'auto', rules })).toBe('ask');
      },
    },
    {
      what: 'commands from other chat channels are refused unless an option allows them',
      picoclaw: 4,
      differs: 'there is no such option: a policy checks the channel',
      async run(place) {
        const policy = ({ context }: { readonly context: { readonly channel: string | undefined } }) =>
          context.channel === 'terminal' || { allow: false as const };
        const tools = new ToolRegistry({ policy }).register(...place.tools.tools());
        const run = (channel?: string) =>
          tools.executeWithContext(
            'run_command',
            { command: 'echo hi' },
            channel ? { channel, chatId: '1' } : {},
          );
        expect((await run('terminal')).forLLM).toContain('hi');
        for (const channel of ['telegram', undefined]) expect((await run(channel)).isError).toBe(true);
      },
    },
  ],
  { picoclaw: 19, shelly: 0, differ: 6 },
);
