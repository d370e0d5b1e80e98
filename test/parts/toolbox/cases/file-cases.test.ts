import { chmodSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { DiskFileSystem, FileTools } from 'toolwright/toolbox/files';
import { Permissions } from 'toolwright/toolbox/permissions';
import { type Place, testStatedCases } from './stated-cases.js';

const asks = () => new Permissions({ mode: 'ask' }).policy;
const denies = (path: string) =>
  new Permissions({ mode: 'auto', rules: [{ decision: 'deny', path }] }).policy;

const NO_APPEND = 'there is no tool that appends: an edit or a patch says where';

/** A rejected call changes nothing and returns an error. */
async function refuses(place: Place, call: readonly [string, object]): Promise<void> {
  const { isAsked, result } = await place.answered(asks(), call, false);
  expect({ isAsked, isError: result?.isError }).toEqual({ isAsked: true, isError: true });
}

/** A denied call is refused without asking. */
async function isDenied(place: Place, call: readonly [string, object]): Promise<void> {
  const { isAsked, result } = await place.answered(denies('**'), call, true);
  expect(isAsked).toBe(false);
  expect(result?.forLLM).toContain('was refused');
}

testStatedCases(
  'reading',
  [
    {
      what: 'a text file is given',
      ...{ picoclaw: 1, shelly: 2 },
      async run(place) {
        place.has({ 'a.txt': 'some text' });
        expect(await place.succeeds('read_file', { path: 'a.txt' })).toContain('some text');
        expect(await place.succeeds('read_file', { path: join(place.root, 'a.txt') })).toContain('some text');
      },
    },
    {
      what: 'a missing file is told',
      ...{ picoclaw: 1, shelly: 1 },
      run: async (place) =>
        expect(await place.fails('read_file', { path: 'gone.txt' })).toBe("There is no 'gone.txt'."),
    },
    {
      what: 'a path has to be given',
      ...{ picoclaw: 1, shelly: 1 },
      async run(place) {
        expect(await place.fails('read_file', {})).toContain('path: is required');
        await place.fails('read_file', { path: '' });
      },
    },
    {
      what: 'a folder is not a file',
      picoclaw: 2,
      async run(place) {
        place.has({ 'd/a.txt': 'x' });
        expect(await place.fails('read_file', { path: 'd' })).toContain('is a folder');
      },
    },
    {
      what: 'what is outside is not read, by a path or through a link',
      ...{ picoclaw: 2, shelly: 1 },
      async run(place) {
        place.links('way');
        await place.fails('read_file', { path: 'way/secret.txt' });
        await place.fails('read_file', { path: join(place.outside, 'secret.txt') });
      },
    },
    {
      what: 'without a folder nothing is read',
      ...{ picoclaw: 1, shelly: 1 },
      run: () => expect(() => new DiskFileSystem({ root: '' })).toThrow('root'),
    },
    {
      what: 'the folder may be given through a link',
      picoclaw: 1,
      async run(place) {
        const alias = join(place.outside, 'alias');
        symlinkSync(place.root, alias);
        place.has({ 'd/a.txt': 'through' });
        const { forLLM } = await new FileTools(new DiskFileSystem({ root: alias })).readFile('d/a.txt');
        expect(forLLM).toContain('through');
      },
    },
    {
      what: 'further folders may be allowed by pattern',
      picoclaw: 2,
      differs: 'a toolset has one folder, and another folder is another toolset',
      run: async (place) => {
        await place.fails('read_file', { path: join(place.outside, 'a.txt') });
        await place.fails('write_file', { path: join(place.outside, 'a.txt'), text: 'x' });
      },
    },
    {
      what: 'bytes are read in parts, each of which tells how to go on',
      picoclaw: 2,
      async run(place) {
        place.has({ 'a.txt': 'abcdefghijklmnopqrstuvwxyz' });
        const first = await place.succeeds('read_file', { path: 'a.txt', fromByte: 0, bytes: 10 });
        expect(first).toContain('bytes 0–9 of 26\nabcdefghij\n');
        expect(first).toContain('fromByte 10');
        const last = await place.succeeds('read_file', { path: 'a.txt', fromByte: 20, bytes: 10 });
        expect(last).toContain('uvwxyz');
        expect(last).not.toContain('read on');
      },
    },
    {
      what: 'behind the end there is nothing, which is not an error',
      ...{ picoclaw: 2, shelly: 1 },
      async run(place) {
        place.has({ 'a.txt': 'one\ntwo\n' });
        expect(await place.succeeds('read_file', { path: 'a.txt', fromByte: 100 })).toContain('no byte 100');
        expect(await place.succeeds('read_file', { path: 'a.txt', fromLine: 100 })).toContain('no line 100');
      },
    },
    {
      what: 'lines are numbered, read in parts, and to the end by default',
      ...{ picoclaw: 2, shelly: 2 },
      async run(place) {
        place.has({ 'a.txt': 'line 1\nline 2\nline 3\nline 4\nline 5\n' });
        const part = await place.succeeds('read_file', { path: 'a.txt', fromLine: 2, lines: 2 });
        expect(part).toContain('lines 2–3 of 5');
        expect(part).toContain('2\tline 2\n3\tline 3');
        expect(part).not.toContain('line 4\n');
        expect(part).toContain('fromLine 4');
        expect(await place.succeeds('read_file', { path: 'a.txt', fromLine: 4 })).toContain(
          '4\tline 4\n5\tline 5',
        );
      },
    },
    {
      what: 'places in bytes are refused beside lines',
      picoclaw: 3,
      differs: 'one tool reads both: bytes win, and what it does not know is left out',
      async run(place) {
        place.has({ 'a.txt': 'line 1\nline 2\n' });
        const bytes = await place.succeeds('read_file', { path: 'a.txt', fromLine: 1, fromByte: 1 });
        expect(bytes).toContain('bytes 1–13 of 14');
        expect(await place.succeeds('read_file', { path: 'a.txt', limit: 1 })).toContain('lines 1–2 of 2');
      },
    },
    {
      what: 'a binary file has no lines, and its bytes are pointed to',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.dat': new Uint8Array([0, 1, 65, 66, 67]) });
        const told = await place.succeeds('read_file', { path: 'a.dat' });
        expect(told).toContain('binary');
        expect(told).toContain('fromByte');
      },
    },
    {
      what: 'a line that is too long is cut, which is told',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.txt': `first\n${'x'.repeat(120_000)}\n` });
        const told = await place.succeeds('read_file', { path: 'a.txt' });
        expect(told).toContain('1\tfirst\n2\txxx');
        expect(told).toMatch(/more (?:bytes|characters)/);
      },
    },
    {
      what: 'no more is given than the limit in bytes, which ends between lines, and tells how to go on',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.txt': '1234567\nsecond line\n' });
        class FewBytes extends FileTools {
          protected override readonly limits = {
            ...{ lines: 10, bytes: 10, imageBytes: 1_000, fileBytes: 1_000, paths: 10, searchMs: 1_000 },
          };
        }
        const { forLLM } = await new FewBytes(new DiskFileSystem({ root: place.root })).readFile('a.txt');
        expect(forLLM).toContain('1\t1234567\n');
        expect(forLLM).not.toContain('second');
        expect(forLLM).toContain('fromLine 2');
      },
    },
    {
      what: 'a last line without an end is a line',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.txt': 'line 1\nline 2' });
        expect(await place.succeeds('read_file', { path: 'a.txt' })).toContain('1\tline 1\n2\tline 2');
      },
    },
    {
      what: 'a listing has names and kinds; that of the folder is the default, and a missing one is told',
      ...{ picoclaw: 3, shelly: 1 },
      async run(place) {
        place.has({ 'a.txt': 'a', 'sub/b.txt': 'b' });
        expect(await place.succeeds('list_files', {})).toContain('a.txt, 1 bytes\nsub/');
        expect(await place.succeeds('list_files', { path: 'sub' })).toContain('b.txt');
        await place.fails('list_files', { path: 'gone' });
      },
    },
    {
      what: 'what somebody denies is not read',
      shelly: 1,
      async run(place) {
        place.has({ 'a.txt': 'secret' });
        await isDenied(place, ['read_file', { path: 'a.txt' }]);
      },
    },
    {
      what: 'a yes to a folder is one to what is below it, and is kept',
      shelly: 2,
      async run(place) {
        place.has({ 'd/e/a.txt': 'x' });
        const file = join(place.outside, 'permissions.json');
        new Permissions({ file }).remember({ action: 'write', path: 'd/**' }, { session: 'c' });
        const { policy } = new Permissions({ file });
        const { isAsked } = await place.answered(policy, ['delete_file', { path: 'd/e/a.txt' }], false);
        expect(isAsked).toBe(false);
      },
    },
    {
      what: 'size, kind and times of a file are told by a tool of their own',
      shelly: 5,
      differs: 'a listing tells kinds and sizes, and there is no tool for times and modes',
      async run(place) {
        place.has({ 'a.txt': 'hello' });
        expect(await place.succeeds('list_files', {})).toContain('a.txt, 5 bytes');
        expect(await place.fails('stat_file', { path: 'a.txt' })).toContain('stat_file');
      },
    },
    {
      what: 'two files are compared by a tool of its own',
      shelly: 6,
      differs: 'a difference is shown of what a call changes or would change, and never of two files',
      run: async (place) => expect(await place.fails('diff_files', {})).toContain('diff_files'),
    },
  ],
  { picoclaw: 27, shelly: 24, differ: 16 },
);

testStatedCases(
  'writing and editing',
  [
    {
      what: 'a new file is written as it is given: with backslashes, and with its ends of lines',
      ...{ picoclaw: 4, shelly: 1 },
      async run(place) {
        for (const text of ['hello', 'aaa\\naaa', 'one\r\ntwo\r\n']) {
          await place.succeeds('write_file', { path: `${text.length}.txt`, text });
          expect(place.text(`${text.length}.txt`)).toBe(text);
        }
      },
    },
    {
      what: 'folders that it needs are made, and a file in their place is told',
      picoclaw: 5,
      async run(place) {
        await place.succeeds('write_file', { path: 'a/b/c/d.txt', text: 'x' });
        await place.succeeds('write_file', { path: 'a/b/c/e.txt', text: 'y' });
        expect(place.text('a/b/c/e.txt')).toBe('y');
        await place.fails('write_file', { path: 'a/b/c/d.txt/f.txt', text: 'x' });
      },
    },
    {
      what: 'path and text have to be given',
      ...{ picoclaw: 2, shelly: 1 },
      async run(place) {
        expect(await place.fails('write_file', { text: 'x' })).toContain('path: is required');
        expect(await place.fails('write_file', { path: 'a.txt' })).toContain('text: is required');
        await place.fails('write_file', { path: '', text: 'x' });
      },
    },
    {
      what: 'a file that is there is not replaced by the way',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.txt': 'old' });
        expect(await place.fails('write_file', { path: 'a.txt', text: 'new' })).toContain('already');
        expect(place.text('a.txt')).toBe('old');
      },
    },
    {
      what: 'a flag replaces it',
      picoclaw: 5,
      differs: 'the version of what was read does, so that nothing is replaced that nobody has read',
      async run(place) {
        place.has({ 'a.txt': 'old' });
        await place.fails('write_file', { path: 'a.txt', text: 'new', overwrite: true });
        const version = /version (\w+)/.exec(await place.succeeds('read_file', { path: 'a.txt' }))?.[1];
        await place.succeeds('write_file', { path: 'a.txt', text: 'new', version });
        expect(place.text('a.txt')).toBe('new');
      },
    },
    {
      what: 'what a file permits stays as it was',
      shelly: 3,
      async run(place) {
        place.has({ 'run.sh': 'echo old\n' });
        chmodSync(join(place.root, 'run.sh'), 0o755);
        const mode = () => statSync(join(place.root, 'run.sh')).mode & 0o777;
        const version = /version (\w+)/.exec(await place.succeeds('read_file', { path: 'run.sh' }))?.[1];
        await place.succeeds('write_file', { path: 'run.sh', text: 'echo new\n', version });
        expect(mode()).toBe(0o755);
        await place.succeeds('edit_file', { path: 'run.sh', edits: [{ oldText: 'new', newText: 'newer' }] });
        expect(mode()).toBe(0o755);
      },
    },
    {
      what: 'a new file is for its owner alone',
      shelly: 1,
      differs: 'it permits what the umask of the process leaves, as files of other programs do',
      async run(place) {
        await place.succeeds('write_file', { path: 'a.txt', text: 'x' });
        expect(statSync(join(place.root, 'a.txt')).mode & 0o777).toBe(0o666 & ~process.umask());
      },
    },
    {
      what: 'one place is replaced, and people are shown the difference',
      ...{ picoclaw: 3, shelly: 1 },
      async run(place) {
        place.has({ 'a.txt': 'Hello World\nsecond\n' });
        const edits = [{ oldText: 'World', newText: 'Universe' }];
        const { forUser } = await place.call('edit_file', { path: 'a.txt', edits });
        expect(place.text('a.txt')).toBe('Hello Universe\nsecond\n');
        expect(forUser).toContain('-Hello World\n+Hello Universe');
      },
    },
    {
      what: 'a missing file, a text that is not there, and one that is there twice are told, and change nothing',
      ...{ picoclaw: 4, shelly: 4 },
      async run(place) {
        place.has({ 'a.txt': 'test test' });
        const edit = (path: string, oldText: string) =>
          place.fails('edit_file', { path, edits: [{ oldText, newText: 'x' }] });
        expect(await edit('gone.txt', 'a')).toContain('gone.txt');
        expect(await edit('a.txt', 'other')).toContain('not');
        expect(await edit('a.txt', 'test')).toMatch(/twice|2 times|2 places/);
        expect(place.text('a.txt')).toBe('test test');
      },
    },
    {
      what: 'nothing outside is edited',
      picoclaw: 1,
      run: async (place) => {
        const edits = [{ oldText: 'a', newText: 'b' }];
        expect(await place.fails('edit_file', { path: join(place.outside, 'a.txt'), edits })).toContain(
          'outside',
        );
      },
    },
    {
      what: 'path, old text and new text have to be given, an old text that says something, and one edit at least',
      ...{ picoclaw: 3, shelly: 3 },
      async run(place) {
        place.has({ 'a.txt': 'data' });
        const of = (args: object) => place.fails('edit_file', args);
        await of({ edits: [{ oldText: 'data', newText: 'x' }] });
        await of({ path: '', edits: [{ oldText: 'data', newText: 'x' }] });
        await of({ path: 'a.txt', edits: [{ newText: 'x' }] });
        await of({ path: 'a.txt', edits: [{ oldText: 'data' }] });
        await of({ path: 'a.txt', edits: [{ oldText: '', newText: 'x' }] });
        await of({ path: 'a.txt', edits: [] });
        expect(place.text('a.txt')).toBe('data');
      },
    },
    {
      what: 'a new text that is left out removes the old one',
      shelly: 2,
      differs: 'it has to be given, empty: who forgets it has not meant to remove anything',
      async run(place) {
        place.has({ 'a.txt': 'keep this' });
        await place.fails('edit_file', { path: 'a.txt', edits: [{ oldText: ' this' }] });
        await place.succeeds('edit_file', { path: 'a.txt', edits: [{ oldText: ' this', newText: '' }] });
        expect(place.text('a.txt')).toBe('keep');
      },
    },
    {
      what: 'several edits at once: removed, inserted and replaced, over several lines',
      shelly: 5,
      async run(place) {
        place.has({ 'a.go': 'import (\n\t"fmt"\n)\n\nfunc old() {}\ngone\n' });
        const edits = [
          { oldText: '\t"fmt"\n', newText: '\t"fmt"\n\t"os"\n' },
          { oldText: 'old()', newText: 'fresh()' },
          { oldText: 'gone\n', newText: '' },
        ];
        await place.succeeds('edit_file', { path: 'a.go', edits });
        expect(place.text('a.go')).toBe('import (\n\t"fmt"\n\t"os"\n)\n\nfunc fresh() {}\n');
      },
    },
    {
      what: 'text is appended to a file by a tool of its own',
      picoclaw: 5,
      differs: NO_APPEND,
      run: async (place) => {
        place.has({ 'a.txt': 'one\n' });
        expect(await place.fails('append_file', { path: 'a.txt', content: 'two' })).toContain('append_file');
        await place.succeeds('edit_file', {
          path: 'a.txt',
          edits: [{ oldText: 'one\n', newText: 'one\ntwo\n' }],
        });
        expect(place.text('a.txt')).toBe('one\ntwo\n');
      },
    },
    {
      what: 'a file is removed, a folder with what is in it only where that is said, and a path has to be given',
      shelly: 4,
      async run(place) {
        place.has({ 'a.txt': 'x', 'd/e/b.txt': 'y' });
        await place.succeeds('delete_file', { path: 'a.txt' });
        await place.fails('delete_file', { path: 'd' });
        await place.succeeds('delete_file', { path: 'd', withContents: true });
        await place.fails('delete_file', { path: '' });
        expect(await place.succeeds('list_files', {})).not.toMatch(/a\.txt|d\//);
      },
    },
    {
      what: 'a file is moved, with the folders that it needs; both paths have to be given',
      shelly: 4,
      async run(place) {
        place.has({ 'a.txt': 'data' });
        await place.fails('move_file', { from: '', to: 'x' });
        await place.fails('move_file', { from: 'a.txt', to: '' });
        await place.succeeds('move_file', { from: 'a.txt', to: 'b/c/d.txt' });
        expect(place.text('b/c/d.txt')).toBe('data');
        await place.fails('read_file', { path: 'a.txt' });
      },
    },
    {
      what: 'files and folders are copied by a tool of its own',
      shelly: 5,
      differs: 'there is none: a shell has one',
      run: async (place) => expect(await place.fails('copy_file', {})).toContain('copy_file'),
    },
    {
      what: 'an empty folder is made by a tool of its own',
      shelly: 5,
      differs: 'folders are made with the files in them',
      run: async (place) => expect(await place.fails('make_folder', {})).toContain('make_folder'),
    },
    {
      what: 'what somebody denies is not changed, moved or removed',
      shelly: 3,
      async run(place) {
        place.has({ 'a.txt': 'safe' });
        await isDenied(place, ['edit_file', { path: 'a.txt', edits: [{ oldText: 'safe', newText: 'x' }] }]);
        await isDenied(place, ['move_file', { from: 'a.txt', to: 'b.txt' }]);
        await isDenied(place, ['delete_file', { path: 'a.txt' }]);
        expect(place.text('a.txt')).toBe('safe');
      },
    },
    {
      what: 'a no to a question changes nothing, and the model is told',
      shelly: 7,
      async run(place) {
        place.has({ 'a.txt': 'safe', 'd/b.txt': 'x' });
        await refuses(place, ['write_file', { path: 'new.txt', text: 'x' }]);
        await refuses(place, ['edit_file', { path: 'a.txt', edits: [{ oldText: 'safe', newText: 'x' }] }]);
        await refuses(place, ['move_file', { from: 'a.txt', to: 'b.txt' }]);
        await refuses(place, ['delete_file', { path: 'a.txt' }]);
        await refuses(place, ['delete_file', { path: 'd', withContents: true }]);
        expect(place.text('a.txt')).toBe('safe');
        expect(await place.succeeds('list_files', {})).not.toContain('new.txt');
      },
    },
    {
      what: 'a yes holds for its call alone, unless it is one for the session',
      shelly: 4,
      async run(place) {
        const permissions = new Permissions({ mode: 'ask' });
        const write = (path: string) =>
          place.answered(permissions.policy, ['write_file', { path, text: 'x' }], true);
        expect((await write('a.txt')).isAsked).toBe(true);
        expect((await write('b.txt')).isAsked).toBe(true);
        permissions.remember({ action: 'write', path: '**' }, { session: 'c' });
        expect((await write('c.txt')).isAsked).toBe(false);
        expect(place.text('a.txt') + place.text('c.txt')).toBe('xx');
      },
    },
    {
      what: 'changes of one file at the same time are made one after the other; moves crosswise come to an end',
      shelly: 3,
      async run(place) {
        place.has({
          'a.txt': Array.from({ length: 30 }, (_, index) => `<${index}>`).join('\n'),
          'b.txt': 'b',
        });
        await Promise.all(
          Array.from({ length: 30 }, (_, index) =>
            place.succeeds('edit_file', {
              path: 'a.txt',
              edits: [{ oldText: `<${index}>`, newText: `done ${index}` }],
            }),
          ),
        );
        expect(place.text('a.txt')).not.toContain('<');
        await Promise.all([
          place.call('move_file', { from: 'a.txt', to: 'b.txt' }),
          place.call('move_file', { from: 'b.txt', to: 'a.txt' }),
          place.call('move_file', { from: 'a.txt', to: 'a.txt' }),
        ]);
        expect(await place.succeeds('list_files', {})).toContain('2 entries');
      },
    },
    {
      what: 'whoever is asked sees what would be removed and added',
      shelly: 2,
      async run(place) {
        place.has({ 'a.txt': 'hello\nworld\n' });
        const edits = [{ oldText: 'world', newText: 'earth' }];
        const { forUser } = await place.call('edit_file', { path: 'a.txt', edits });
        expect(forUser).toMatch(/-world\n\+earth/);
        expect((await place.call('write_file', { path: 'n.txt', text: 'new\n' })).forUser).toContain('+new');
      },
    },
    {
      what: 'a change that changes nothing has an empty difference',
      shelly: 1,
      differs: 'it is refused, because the model has meant something else',
      async run(place) {
        place.has({ 'a.txt': 'same' });
        await place.fails('edit_file', { path: 'a.txt', edits: [{ oldText: 'same', newText: 'same' }] });
      },
    },
  ],
  { picoclaw: 33, shelly: 59, differ: 24 },
);

testStatedCases(
  'searching',
  [
    {
      what: 'lines that fit a regular expression are given with their numbers',
      shelly: 2,
      async run(place) {
        place.has({ 'hello.go': 'package main\nfunc hello() {}\n' });
        const told = await place.succeeds('search_files', { text: 'func.*hello', regex: true });
        expect(told).toContain('hello.go\n2: func hello() {}');
        expect(told).not.toContain('package');
      },
    },
    {
      what: 'what is not a pattern, and nothing, are told',
      shelly: 3,
      async run(place) {
        expect(await place.fails('search_files', { text: '[invalid', regex: true })).toContain('pattern');
        await place.fails('search_files', { text: '' });
        await place.fails('find_files', { pattern: '' });
      },
    },
    {
      what: 'no more lines are given than were wanted',
      shelly: 1,
      async run(place) {
        place.has({ 'a.txt': 'match\n'.repeat(20) });
        const told = await place.succeeds('search_files', { text: 'match', most: 5 });
        expect(told.match(/^\d+: match$/gm)).toHaveLength(5);
      },
    },
    {
      what: 'lines around are shown where that is wanted, and told apart',
      shelly: 1,
      async run(place) {
        place.has({ 'a.go': 'line1\nline2\nfunc target()\nline4\nline5\n' });
        const told = await place.succeeds('search_files', { text: 'func target', around: 1 });
        expect(told).toContain('2- line2\n3: func target()\n4- line4');
      },
    },
    {
      what: 'what is found in a very long line is shown',
      shelly: 1,
      async run(place) {
        place.has({ 'a.txt': `${'x'.repeat(100_000)}NEEDLE${'y'.repeat(1_000)}\n` });
        expect(await place.succeeds('search_files', { text: 'NEEDLE' })).toContain('1 line fits');
      },
    },
    {
      what: 'files are found by patterns: in one folder, in a named one, in all',
      shelly: 3,
      async run(place) {
        place.has({
          'main.go': '',
          'readme.md': '',
          'sub/b.go': '',
          'sub/deep/c.go': '',
          'sub/deep/d.txt': '',
        });
        const find = (pattern: string) => place.succeeds('find_files', { pattern });
        expect(await find('*.go')).toBe('main.go');
        expect(await find('sub/*.go')).toBe('sub/b.go');
        expect((await find('**/*.go')).split('\n').sort()).toEqual(['main.go', 'sub/b.go', 'sub/deep/c.go']);
      },
    },
    {
      what: 'no more files are given than were wanted',
      shelly: 1,
      differs: 'how many is for the application to say, 500 by default',
      async run(place) {
        place.has(Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`f${index}.txt`, 'x'])));
        class FewPaths extends FileTools {
          protected override readonly limits = {
            ...{ lines: 10, bytes: 1_000, imageBytes: 1_000, fileBytes: 1_000, paths: 3, searchMs: 1_000 },
          };
        }
        const told = await new FewPaths(new DiskFileSystem({ root: place.root })).findFiles('**/*.txt');
        expect(told.match(/^f\d\.txt$/gm)).toHaveLength(3);
      },
    },
    {
      what: 'nothing is searched that somebody denies',
      shelly: 2,
      async run(place) {
        place.has({ 'a.txt': 'x' });
        await isDenied(place, ['search_files', { text: 'x' }]);
        await isDenied(place, ['find_files', { pattern: '**' }]);
      },
    },
  ],
  { picoclaw: 0, shelly: 14, differ: 1 },
);
