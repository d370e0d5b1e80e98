import { chmodSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { DiskFileSystem, FileTools } from 'toolwright/toolbox/files';
import { Permissions } from 'toolwright/toolbox/permissions';
import { type Place, testStatedCases } from './stated-cases.js';

const asks = () => new Permissions({ mode: 'ask' }).policy;
const denies = (path: string) =>
  new Permissions({ mode: 'auto', rules: [{ decision: 'deny', path }] }).policy;

const NO_APPEND = 'edits and patches append text';

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
      what: 'a text file is returned',
      ...{ picoclaw: 1, shelly: 2 },
      async run(place) {
        place.has({ 'a.txt': 'some text' });
        expect(await place.succeeds('read_file', { path: 'a.txt' })).toContain('some text');
        expect(await place.succeeds('read_file', { path: join(place.root, 'a.txt') })).toContain('some text');
      },
    },
    {
      what: 'a missing file is reported',
      ...{ picoclaw: 1, shelly: 1 },
      run: async (place) =>
        expect(await place.fails('read_file', { path: 'gone.txt' })).toBe("There is no 'gone.txt'."),
    },
    {
      what: 'a path is required',
      ...{ picoclaw: 1, shelly: 1 },
      async run(place) {
        expect(await place.fails('read_file', {})).toContain('path: is required');
        await place.fails('read_file', { path: '' });
      },
    },
    {
      what: 'a folder cannot be read as a file',
      picoclaw: 2,
      async run(place) {
        place.has({ 'd/a.txt': 'x' });
        expect(await place.fails('read_file', { path: 'd' })).toContain('is a folder');
      },
    },
    {
      what: 'files outside of the folder cannot be read, by path or through a link',
      ...{ picoclaw: 2, shelly: 1 },
      async run(place) {
        place.links('way');
        await place.fails('read_file', { path: 'way/secret.txt' });
        await place.fails('read_file', { path: join(place.outside, 'secret.txt') });
      },
    },
    {
      what: 'an empty root throws',
      ...{ picoclaw: 1, shelly: 1 },
      run: () => expect(() => new DiskFileSystem({ root: '' })).toThrow('root'),
    },
    {
      what: 'the root may be a link to the folder',
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
      what: 'further folders can be allowed by pattern',
      picoclaw: 2,
      differs: 'a toolset has one folder; use another toolset for another folder',
      run: async (place) => {
        await place.fails('read_file', { path: join(place.outside, 'a.txt') });
        await place.fails('write_file', { path: join(place.outside, 'a.txt'), text: 'x' });
      },
    },
    {
      what: 'bytes are read in parts, with a hint for the next part',
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
      what: 'reading after the end of a file is not an error',
      ...{ picoclaw: 2, shelly: 1 },
      async run(place) {
        place.has({ 'a.txt': 'one\ntwo\n' });
        expect(await place.succeeds('read_file', { path: 'a.txt', fromByte: 100 })).toContain('no byte 100');
        expect(await place.succeeds('read_file', { path: 'a.txt', fromLine: 100 })).toContain('no line 100');
      },
    },
    {
      what: 'lines are numbered and read in parts, by default to the end',
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
      what: 'byte positions are refused together with lines',
      picoclaw: 3,
      differs: 'one tool reads both: bytes win, and unknown arguments are ignored',
      async run(place) {
        place.has({ 'a.txt': 'line 1\nline 2\n' });
        const bytes = await place.succeeds('read_file', { path: 'a.txt', fromLine: 1, fromByte: 1 });
        expect(bytes).toContain('bytes 1–13 of 14');
        expect(await place.succeeds('read_file', { path: 'a.txt', limit: 1 })).toContain('lines 1–2 of 2');
      },
    },
    {
      what: 'a binary file is reported as such, with a hint to read its bytes',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.dat': new Uint8Array([0, 1, 65, 66, 67]) });
        const told = await place.succeeds('read_file', { path: 'a.dat' });
        expect(told).toContain('binary');
        expect(told).toContain('fromByte');
      },
    },
    {
      what: 'a line that is too long is truncated with a note',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.txt': `first\n${'x'.repeat(120_000)}\n` });
        const told = await place.succeeds('read_file', { path: 'a.txt' });
        expect(told).toContain('1\tfirst\n2\txxx');
        expect(told).toMatch(/more (?:bytes|characters)/);
      },
    },
    {
      what: 'the result ends at the last complete line within the byte limit, with a hint for the next part',
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
      what: 'a last line without a line break is returned',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.txt': 'line 1\nline 2' });
        expect(await place.succeeds('read_file', { path: 'a.txt' })).toContain('1\tline 1\n2\tline 2');
      },
    },
    {
      what: 'a listing has names and kinds; the default is the root, and a missing folder is reported',
      ...{ picoclaw: 3, shelly: 1 },
      async run(place) {
        place.has({ 'a.txt': 'a', 'sub/b.txt': 'b' });
        expect(await place.succeeds('list_files', {})).toContain('a.txt, 1 bytes\nsub/');
        expect(await place.succeeds('list_files', { path: 'sub' })).toContain('b.txt');
        await place.fails('list_files', { path: 'gone' });
      },
    },
    {
      what: 'a denied file is not read',
      shelly: 1,
      async run(place) {
        place.has({ 'a.txt': 'secret' });
        await isDenied(place, ['read_file', { path: 'a.txt' }]);
      },
    },
    {
      what: 'an approval for a folder covers the files below it and is stored',
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
      what: 'a separate tool returns size, kind and times of a file',
      shelly: 5,
      differs: 'a listing has kinds and sizes, and no tool returns times and modes',
      async run(place) {
        place.has({ 'a.txt': 'hello' });
        expect(await place.succeeds('list_files', {})).toContain('a.txt, 5 bytes');
        expect(await place.fails('stat_file', { path: 'a.txt' })).toContain('stat_file');
      },
    },
    {
      what: 'a separate tool compares two files',
      shelly: 6,
      differs: 'differences are shown only for changes that a call makes or would make',
      run: async (place) => expect(await place.fails('diff_files', {})).toContain('diff_files'),
    },
  ],
  { picoclaw: 27, shelly: 24, differ: 16 },
);

testStatedCases(
  'writing and editing',
  [
    {
      what: 'a new file is written unchanged, with backslashes and line endings',
      ...{ picoclaw: 4, shelly: 1 },
      async run(place) {
        for (const text of ['hello', 'aaa\\naaa', 'one\r\ntwo\r\n']) {
          await place.succeeds('write_file', { path: `${text.length}.txt`, text });
          expect(place.text(`${text.length}.txt`)).toBe(text);
        }
      },
    },
    {
      what: 'parent folders are created; a file in their place is an error',
      picoclaw: 5,
      async run(place) {
        await place.succeeds('write_file', { path: 'a/b/c/d.txt', text: 'x' });
        await place.succeeds('write_file', { path: 'a/b/c/e.txt', text: 'y' });
        expect(place.text('a/b/c/e.txt')).toBe('y');
        await place.fails('write_file', { path: 'a/b/c/d.txt/f.txt', text: 'x' });
      },
    },
    {
      what: 'path and text are required',
      ...{ picoclaw: 2, shelly: 1 },
      async run(place) {
        expect(await place.fails('write_file', { text: 'x' })).toContain('path: is required');
        expect(await place.fails('write_file', { path: 'a.txt' })).toContain('text: is required');
        await place.fails('write_file', { path: '', text: 'x' });
      },
    },
    {
      what: 'an existing file is not replaced by default',
      picoclaw: 1,
      async run(place) {
        place.has({ 'a.txt': 'old' });
        expect(await place.fails('write_file', { path: 'a.txt', text: 'new' })).toContain('already');
        expect(place.text('a.txt')).toBe('old');
      },
    },
    {
      what: 'a flag replaces an existing file',
      picoclaw: 5,
      differs: 'its version must be given, so that only a file that was read can be replaced',
      async run(place) {
        place.has({ 'a.txt': 'old' });
        await place.fails('write_file', { path: 'a.txt', text: 'new', overwrite: true });
        const version = /version (\w+)/.exec(await place.succeeds('read_file', { path: 'a.txt' }))?.[1];
        await place.succeeds('write_file', { path: 'a.txt', text: 'new', version });
        expect(place.text('a.txt')).toBe('new');
      },
    },
    {
      what: 'the mode of a file is preserved',
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
      what: 'a new file is accessible only to its owner',
      shelly: 1,
      differs: 'its mode follows the umask of the process, as for other programs',
      async run(place) {
        await place.succeeds('write_file', { path: 'a.txt', text: 'x' });
        expect(statSync(join(place.root, 'a.txt')).mode & 0o777).toBe(0o666 & ~process.umask());
      },
    },
    {
      what: 'an edit replaces a text and shows the difference to the user',
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
      what: 'a missing file, a missing text and an ambiguous text are errors and change nothing',
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
      what: 'a file outside of the folder cannot be edited',
      picoclaw: 1,
      run: async (place) => {
        const edits = [{ oldText: 'a', newText: 'b' }];
        expect(await place.fails('edit_file', { path: join(place.outside, 'a.txt'), edits })).toContain(
          'outside',
        );
      },
    },
    {
      what: 'path, old text, new text and at least one edit are required, and the old text must not be empty',
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
      what: 'a missing new text removes the old text',
      shelly: 2,
      differs: 'it must be given as an empty text, because leaving it out may be a mistake',
      async run(place) {
        place.has({ 'a.txt': 'keep this' });
        await place.fails('edit_file', { path: 'a.txt', edits: [{ oldText: ' this' }] });
        await place.succeeds('edit_file', { path: 'a.txt', edits: [{ oldText: ' this', newText: '' }] });
        expect(place.text('a.txt')).toBe('keep');
      },
    },
    {
      what: 'several edits in one call remove, insert and replace text over several lines',
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
      what: 'a separate tool appends text to a file',
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
      what: 'a file is deleted, a folder with contents only with withContents, and a path is required',
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
      what: 'a file is moved and parent folders are created; both paths are required',
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
      what: 'a separate tool copies files and folders',
      shelly: 5,
      differs: 'shell commands copy files',
      run: async (place) => expect(await place.fails('copy_file', {})).toContain('copy_file'),
    },
    {
      what: 'a separate tool creates an empty folder',
      shelly: 5,
      differs: 'folders are created together with their files',
      run: async (place) => expect(await place.fails('make_folder', {})).toContain('make_folder'),
    },
    {
      what: 'a denied file is not changed, moved or deleted',
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
      what: 'a rejected call changes nothing and returns an error to the model',
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
      what: 'an approval applies only to its call, unless it is remembered for the session',
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
      what: 'concurrent edits of one file are serialized, and moves in opposite directions do not deadlock',
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
      what: 'the user sees the removed and added lines of a change',
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
      what: 'an edit that changes nothing has an empty difference',
      shelly: 1,
      differs: 'it is refused, because it is probably a mistake of the model',
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
      what: 'lines that match a regular expression are returned with their numbers',
      shelly: 2,
      async run(place) {
        place.has({ 'hello.go': 'package main\nfunc hello() {}\n' });
        const told = await place.succeeds('search_files', { text: 'func.*hello', regex: true });
        expect(told).toContain('hello.go\n2: func hello() {}');
        expect(told).not.toContain('package');
      },
    },
    {
      what: 'an invalid pattern and an empty one are errors',
      shelly: 3,
      async run(place) {
        expect(await place.fails('search_files', { text: '[invalid', regex: true })).toContain(
          'regular expression',
        );
        await place.fails('search_files', { text: '' });
        await place.fails('find_files', { pattern: '' });
      },
    },
    {
      what: 'the number of lines is limited as requested',
      shelly: 1,
      async run(place) {
        place.has({ 'a.txt': 'match\n'.repeat(20) });
        const told = await place.succeeds('search_files', { text: 'match', most: 5 });
        expect(told.match(/^\d+: match$/gm)).toHaveLength(5);
      },
    },
    {
      what: 'context lines are shown on request and marked',
      shelly: 1,
      async run(place) {
        place.has({ 'a.go': 'line1\nline2\nfunc target()\nline4\nline5\n' });
        const told = await place.succeeds('search_files', { text: 'func target', around: 1 });
        expect(told).toContain('2- line2\n3: func target()\n4- line4');
      },
    },
    {
      what: 'a match in a very long line is found',
      shelly: 1,
      async run(place) {
        place.has({ 'a.txt': `${'x'.repeat(100_000)}NEEDLE${'y'.repeat(1_000)}\n` });
        expect(await place.succeeds('search_files', { text: 'NEEDLE' })).toContain('1 line matches');
      },
    },
    {
      what: 'patterns find files in the root, in a named folder and in all folders',
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
      what: 'the number of files is limited as requested',
      shelly: 1,
      differs: 'the application sets the limit, 500 by default',
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
      what: 'denied paths are not searched',
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
