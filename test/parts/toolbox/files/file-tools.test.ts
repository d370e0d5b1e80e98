import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { discoverTools, type ToolPolicy, ToolRegistry } from 'toolwright';
import { FileSystem, FileTools, fileTools, MemoryFileSystem } from 'toolwright/toolbox/files';
import 'reflect-metadata';
import { container, type InjectionToken } from 'tsyringe';
import { TOOLBOXES, versionIn } from './folders.js';

const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('');

describe.each(TOOLBOXES)('FileTools %s', (_where, toolbox) => {
  describe('read_file', () => {
    test('returns numbered lines, the number of lines and a version', async () => {
      const { call } = toolbox({ 'a.txt': 'one\ntwo\n' });
      const { forLLM, isError } = await call('read_file', { path: 'a.txt' });
      expect(isError).toBe(false);
      expect(forLLM).toMatch(/^a\.txt: lines 1–2 of 2, version [0-9a-f]{12}\n1\tone\n2\ttwo$/);
    });

    test('continues after the last line that was read', async () => {
      const { call } = toolbox({ 'a.txt': lines(2_500) });
      const first = await call('read_file', { path: 'a.txt' });
      expect(first.forLLM).toContain('lines 1–2000 of 2500');
      expect(first.forLLM).toContain('(500 more lines; continue with fromLine 2001)');
      const second = await call('read_file', { path: 'a.txt', fromLine: 2001 });
      expect(second.forLLM).toContain('lines 2001–2500 of 2500');
      expect(second.forLLM).toContain('\n2001\tline 2001\n');
      expect(second.forLLM).not.toContain('read on');
    });

    test('returns the requested number of lines', async () => {
      const { call } = toolbox({ 'a.txt': lines(10) });
      const { forLLM } = await call('read_file', { path: 'a.txt', fromLine: 3, lines: 2 });
      expect(forLLM).toContain('lines 3–4 of 10');
      expect(forLLM).toContain('\n3\tline 3\n4\tline 4\n(6 more lines');
    });

    test('reports a line number after the end of the file', async () => {
      const { call } = toolbox({ 'a.txt': lines(3) });
      expect((await call('read_file', { path: 'a.txt', fromLine: 9 })).forLLM).toMatch(
        /a\.txt: 3 lines, .*there is no line 9/,
      );
    });

    test('reads a last line without a line break, an empty file and \\r\
 line endings', async () => {
      const { call } = toolbox({ 'a.txt': 'one\ntwo', 'empty.txt': '', 'dos.txt': 'one\r\ntwo\r\n' });
      expect((await call('read_file', { path: 'a.txt' })).forLLM).toMatch(
        /lines 1–2 of 2.*\n1\tone\n2\ttwo$/,
      );
      expect((await call('read_file', { path: 'empty.txt' })).forLLM).toMatch(/^empty\.txt: empty, version/);
      expect((await call('read_file', { path: 'dos.txt' })).forLLM).toMatch(
        /lines end in \\r\\n\n1\tone\n2\ttwo$/,
      );
    });

    test('truncates a long line, whose rest can be read by bytes', async () => {
      const { call } = toolbox({ 'a.txt': `${'x'.repeat(5_000)}\nend\n` });
      const { forLLM } = await call('read_file', { path: 'a.txt' });
      expect(forLLM).toContain('… (3000 more characters)');
      expect(forLLM).toContain('\n2\tend');
      const rest = await call('read_file', { path: 'a.txt', fromByte: 2_000, bytes: 3_003 });
      expect(rest.forLLM).toContain(`${'x'.repeat(3_000)}\nen`);
    });

    test('limits the size of its result', async () => {
      const { call } = toolbox({ 'a.txt': `${'y'.repeat(1_500)}\n`.repeat(500) });
      const { forLLM } = await call('read_file', { path: 'a.txt' });
      expect(forLLM.length).toBeLessThan(101_000);
      expect(forLLM).toMatch(/continue with fromLine 67\)$/);
    });

    test('reads a range of bytes without splitting characters', async () => {
      const { call } = toolbox({ 'a.txt': 'aéz€b' });
      expect((await call('read_file', { path: 'a.txt', fromByte: 2, bytes: 4 })).forLLM).toBe(
        'a.txt: bytes 3–3 of 8\nz\n(4 more bytes; continue with fromByte 4)',
      );
      expect((await call('read_file', { path: 'a.txt', fromByte: 4 })).forLLM).toBe(
        'a.txt: bytes 4–7 of 8\n€b',
      );
      expect((await call('read_file', { path: 'a.txt', fromByte: 99 })).forLLM).toContain(
        'there is no byte 99',
      );
    });

    test('reports that a file is binary, and shows its bytes on request', async () => {
      const { call } = toolbox({ 'a.bin': new Uint8Array([1, 0, 255, 16]) });
      expect((await call('read_file', { path: 'a.bin' })).forLLM).toContain('4 bytes that cannot be shown');
      expect((await call('read_file', { path: 'a.bin', fromByte: 0 })).forLLM).toContain(
        'in hexadecimal\n01 00 ff 10',
      );
    });

    test('returns images as parts, recognized by their first bytes', async () => {
      const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 1]);
      const { call } = toolbox({ 'a.dat': png, 'b.png': 'no image' });
      const { content } = await call('read_file', { path: 'a.dat' });
      expect(content?.[1]).toEqual({
        type: 'image',
        mimeType: 'image/png',
        data: Buffer.from(png).toString('base64'),
      });
      expect((await call('read_file', { path: 'b.png' })).content).toBeUndefined();
    });

    test('reports a missing file, a folder and a path that leads out of the folder', async () => {
      const { call } = toolbox({ 'a/b.txt': '' });
      const told = async (path: string): Promise<string> => {
        const { isError, forLLM } = await call('read_file', { path });
        expect(isError).toBe(true);
        return forLLM;
      };
      expect(await told('c.txt')).toBe("There is no 'c.txt'.");
      expect(await told('a')).toBe("'a' is a folder, not a file.");
      expect(await told('a/b.txt/c')).toBe("'a/b.txt' is a file, not a folder.");
      expect(await told('../c.txt')).toBe("'../c.txt' leads out of the folder.");
      // A path in memory is always relative to its root.
      expect(await told('/etc/passwd')).toMatch(
        /^('\/etc\/passwd' is outside of the folder|There is no 'etc\/passwd')\.$/,
      );
      expect(await told('a\u0000b')).toContain('invisible characters');
      expect(await told('')).toBe("'.' is a folder, not a file.");
    });
  });

  describe('list_files', () => {
    test('lists kinds and sizes in order, by default of the root folder', async () => {
      const { call } = toolbox({ 'b.txt': 'four', 'a/c.txt': '' });
      expect((await call('list_files', {})).forLLM).toBe('.: 2 entries\na/\nb.txt, 4 bytes');
      expect((await call('list_files', { path: 'b.txt' })).forLLM).toMatch(
        /^b\.txt: a file, 4 bytes, changed 2/,
      );
      expect((await call('list_files', { path: 'nowhere' })).isError).toBe(true);
    });
  });

  describe('find_files', () => {
    const tree = {
      'src/a.ts': '',
      'src/deep/b.ts': '',
      'src/deep/c.js': '',
      'd.ts': '',
      'out/e.ts': '',
      '.gitignore': 'out/\n*.log\n!keep.log\n',
      'x.log': '',
      'keep.log': '',
      'src/deep/.gitignore': 'c.*\n',
      '.git/config': '',
    };

    test('finds files by pattern, without files ignored by .gitignore', async () => {
      const { call } = toolbox(tree);
      const found = async (args: object): Promise<string> => (await call('find_files', args)).forLLM;
      expect(await found({ pattern: '**/*.ts' })).toBe('d.ts\nsrc/a.ts\nsrc/deep/b.ts');
      expect(await found({ pattern: '*.ts' })).toBe('d.ts');
      expect(await found({ pattern: 'src/**' })).toBe('src/a.ts\nsrc/deep/.gitignore\nsrc/deep/b.ts');
      expect(await found({ pattern: '**/*.{js,log}' })).toBe('keep.log');
      expect(await found({ pattern: '*.ts', path: 'src/deep' })).toBe('src/deep/b.ts');
      expect(await found({ pattern: 'nothing' })).toBe('No file matches.');
    });

    test('finds ignored files on request, or if the search starts in an ignored folder', async () => {
      const { call } = toolbox(tree);
      const found = async (args: object): Promise<string> => (await call('find_files', args)).forLLM;
      expect(await found({ pattern: '**/*.{js,log}', withIgnored: true })).toBe(
        'keep.log\nx.log\nsrc/deep/c.js',
      );
      expect(await found({ pattern: '*', path: 'out' })).toBe('out/e.ts');
    });

    test('reports that there are more files than it shows', async () => {
      const { call } = toolbox(
        Object.fromEntries(Array.from({ length: 510 }, (_, index) => [`f${index}`, ''])),
      );
      const { forLLM } = await call('find_files', { pattern: '*' });
      expect(forLLM.split('\n')).toHaveLength(501);
      expect(forLLM).toContain('more than 500');
    });
  });

  describe('search_files', () => {
    const tree = {
      'a.ts': 'const needle = 1;\nlet other;\nlet last;\n',
      'b/c.ts': 'zero\none\nNeedle\ntwo\nthree\nfour\nneedle\n',
      'd.bin': new Uint8Array([...Buffer.from('needle'), 0]),
      'e.js': 'needle (twice) needle\r\n',
    };

    test('returns matching lines with their numbers, file by file', async () => {
      const { call } = toolbox(tree);
      expect((await call('search_files', { text: 'needle' })).forLLM).toBe(
        '3 lines match (4 files searched).\n\na.ts\n1: const needle = 1;\n\ne.js\n1: needle (twice) needle\n\nb/c.ts\n7: needle',
      );
    });

    test('treats the text as literal, or as a regular expression on request', async () => {
      const { call } = toolbox(tree);
      const count = async (args: object): Promise<string> =>
        (await call('search_files', args)).forLLM.replace(/ \(.*/s, '');
      expect(await count({ text: 'needle (twice)' })).toBe('1 line matches');
      expect(await count({ text: 'needle (twice)', regex: true })).toBe('No line matches');
      expect(await count({ text: '^n..dle$', regex: true })).toBe('1 line matches');
      expect(await count({ text: 'NEEDLE', ignoreCase: true })).toBe('4 lines match');
      expect(await count({ text: 'needle', files: '**/*.ts' })).toBe('2 lines match');
      expect(await count({ text: 'needle', path: 'a.ts' })).toBe('1 line matches');
      expect(await count({ text: 'needle', path: 'b' })).toBe('1 line matches');
    });

    test('finds the same lines as RegExp, for random patterns', async () => {
      const piece = fc.constantFrom(
        'a',
        'b',
        'ab',
        ' ',
        '.',
        'a*',
        'b?',
        '(a)+',
        '(b|c)',
        '[ab]',
        '[^a]',
        '^',
        '$',
        'a{2}',
        'B',
        '(?:a b)?',
        '\\w',
        '(a(b)c)',
        'b{0}',
      );
      const line = fc
        .array(fc.constantFrom('a', 'b', 'c', ' ', 'B', 'ab'), { maxLength: 8 })
        .map((all) => all.join(''));
      await fc.assert(
        fc.asyncProperty(
          fc.array(piece, { minLength: 1, maxLength: 5 }),
          fc.array(line, { minLength: 1, maxLength: 6 }),
          fc.boolean(),
          async (pieces, lines, ignoreCase) => {
            const pattern = pieces.join('');
            const { call } = toolbox({ 'x.txt': `${lines.join('\n')}\n` });
            const { forLLM, isError } = await call('search_files', {
              text: pattern,
              regex: true,
              ignoreCase,
            });
            fc.pre(!isError);
            const expected = lines.filter((one) =>
              new RegExp(pattern, ignoreCase ? 'iu' : 'u').test(one),
            ).length;
            const found = Number(/^(\d+) line/.exec(forLLM)?.[1] ?? 0);
            expect([pattern, lines, found]).toEqual([pattern, lines, expected]);
          },
        ),
        { numRuns: 60 },
      );
    });

    test('shows context lines, and marks gaps', async () => {
      const { call } = toolbox(tree);
      const { forLLM } = await call('search_files', {
        text: 'needle',
        ignoreCase: true,
        path: 'b',
        around: 1,
      });
      expect(forLLM).toBe(
        '2 lines match (1 file searched).\n\nb/c.ts\n2- one\n3: Needle\n4- two\n--\n6- four\n7: needle',
      );
    });

    test('reports that there are more lines than requested', async () => {
      const { call } = toolbox({ 'a.txt': 'x\n'.repeat(50), 'b.txt': 'x\n' });
      const { forLLM } = await call('search_files', { text: 'x', most: 50 });
      expect(forLLM).toContain('50 lines match');
      expect(forLLM).toContain('more than 50 matching lines');
      expect(forLLM).not.toContain('b.txt');
      const all = await call('search_files', { text: 'x', most: 51 });
      expect(all.forLLM).toContain('51 lines match (2 files searched).');
    });

    test('refuses invalid, empty and exponential patterns', async () => {
      const { call } = toolbox({ 'a.txt': `${'a'.repeat(3_000)}\n`, 'short/b.txt': `${'a'.repeat(100)}\n` });
      const told = async (text: string, path = '.'): Promise<string> => {
        const { isError, forLLM } = await call('search_files', { text, regex: true, path });
        return `${isError} ${forLLM}`;
      };
      expect(await told('(unclosed')).toMatch(/^true The regular expression is invalid/);
      expect(await told('')).toMatch(/^true/);
      for (const evil of ['(a+)+$', '(a|a)*b', '(a*)*b', '^(\\w+\\s?)*$', '(?=(a+)+b)'])
        expect(await told(evil)).toMatch(/^true The pattern may take exponential time/);
      for (const slow of ['.*.*.*.*.*=.*', '(a{1,30}){1,30}b', '(a*)\\1*\\1*\\1*b'])
        expect(await told(slow)).toMatch(
          /pattern takes too long there: a\.txt|^true The pattern may take exponential time/,
        );
      expect(await told('a.*b.*c', 'short')).toMatch(/^false No line matches/);
    });

    test('leaves out files in which a pattern takes too long, and stops after three', async () => {
      const long = 'x'.repeat(100_000);
      const { call } = toolbox({ 'a.js': 'xab\n', 'long.js': long, 'z.js': 'xab\n' });
      const search = { text: '\\w+ab?b', regex: true };
      const some = await call('search_files', search);
      expect([some.isError, some.forLLM]).toEqual([
        false,
        '2 lines match (2 files searched; not searched, because the pattern takes too long there: long.js).\n\na.js\n1: xab\n\nz.js\n1: xab',
      ]);
      const many = toolbox({ '1.js': long, '2.js': long, '3.js': long, '4.js': long });
      expect((await many.call('search_files', search)).forLLM).toBe(
        'No line matches (0 files searched; not searched, because the pattern takes too long there: 1.js, 2.js, 3.js; the search was stopped: write a simpler pattern).',
      );
    });

    test('truncates long lines', async () => {
      const { call } = toolbox({ 'a.txt': `needle${'x'.repeat(1_000)}` });
      const { forLLM } = await call('search_files', { text: 'needle' });
      expect(forLLM).toContain('… (706 more characters)');
    });
  });

  describe('write_file', () => {
    test('creates a file with its parent folders, byte for byte', async () => {
      const { call, texts } = toolbox();
      const text = 'a\\nb\r\nc\u00e9\n';
      const { isError, forLLM } = await call('write_file', { path: 'new/deep/a.txt', text });
      expect([isError, forLLM]).toEqual([
        false,
        expect.stringMatching(/^new\/deep\/a\.txt: created, version /),
      ]);
      expect(texts()).toEqual({ 'new/deep/a.txt': text });
    });

    test('replaces a file only if the current version is given', async () => {
      const { call, texts } = toolbox({ 'a.txt': 'old' });
      const blind = await call('write_file', { path: 'a.txt', text: 'new' });
      expect(blind.forLLM).toBe(
        "'a.txt' already exists. Edit it; or read it, and give its version to replace it.",
      );
      const version = versionIn(await call('read_file', { path: 'a.txt' }));
      const wrong = await call('write_file', { path: 'a.txt', text: 'new', version: '000000000000' });
      expect(wrong.forLLM).toBe(
        `'a.txt' has changed since it was read: its version is ${version}, not 000000000000. Read it again.`,
      );
      expect(texts()).toEqual({ 'a.txt': 'old' });
      expect((await call('write_file', { path: 'a.txt', text: 'new', version })).isError).toBe(false);
      expect(texts()).toEqual({ 'a.txt': 'new' });
    });

    test('shows the difference to the user, but not to the model', async () => {
      const { call } = toolbox({ 'a.txt': 'one\ntwo\n' });
      const version = versionIn(await call('read_file', { path: 'a.txt' }));
      const { forUser, forLLM } = await call('write_file', { path: 'a.txt', text: 'one\n2\n', version });
      expect(forUser).toContain('--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n');
      expect(forLLM).not.toContain('@@');
    });

    test('is refused if a folder has this path, below a file and outside', async () => {
      const { call } = toolbox({ 'a/b.txt': '' });
      expect((await call('write_file', { path: 'a', text: '' })).isError).toBe(true);
      expect((await call('write_file', { path: '.', text: '' })).isError).toBe(true);
      expect((await call('write_file', { path: 'a/b.txt/c', text: '' })).isError).toBe(true);
      expect((await call('write_file', { path: '../b.txt', text: '' })).isError).toBe(true);
    });
  });

  describe('edit_file', () => {
    test('applies several edits, each to the original text', async () => {
      const { call, texts } = toolbox({ 'a.txt': 'one two three' });
      const edits = [
        { oldText: 'one', newText: 'two' },
        { oldText: 'two', newText: 'one' },
        { oldText: ' three', newText: '' },
      ];
      expect((await call('edit_file', { path: 'a.txt', edits })).forLLM).toMatch(/^a\.txt: changed, version/);
      expect(texts()).toEqual({ 'a.txt': 'two one' });
    });

    test('applies no edit if one fails, and explains every failure', async () => {
      const { call, texts } = toolbox({ 'a.txt': 'x\nx\ny = 1;\nz' });
      const edits = [
        { oldText: 'x', newText: '1' },
        { oldText: 'z', newText: '2' },
        { oldText: 'nothing', newText: '3' },
        { oldText: 'y  =\n1;', newText: '4' },
      ];
      const { isError, forLLM } = await call('edit_file', { path: 'a.txt', edits });
      expect(isError).toBe(true);
      expect(forLLM.split('\n')).toEqual([
        "'a.txt' was not changed:",
        '- edit 1: oldText occurs 2 times (lines 1, 2); include more of the surrounding text, or set all: true',
        '- edit 3: oldText was not found; it must match the file exactly',
        '- edit 4: oldText was not found, but line 3 has a text that differs only in white space',
      ]);
      expect(texts()).toEqual({ 'a.txt': 'x\nx\ny = 1;\nz' });
    });

    test('replaces all occurrences if `all` is set', async () => {
      const { call, texts } = toolbox({ 'a.txt': 'x x x' });
      await call('edit_file', { path: 'a.txt', edits: [{ oldText: 'x', newText: '$&y', all: true }] });
      expect(texts()).toEqual({ 'a.txt': '$&y $&y $&y' });
    });

    test('refuses overlapping edits, edits that change nothing, and an empty oldText', async () => {
      const { call } = toolbox({ 'a.txt': 'abc' });
      const told = async (...edits: object[]): Promise<string> =>
        (await call('edit_file', { path: 'a.txt', edits })).forLLM;
      expect(await told({ oldText: 'ab', newText: '' }, { oldText: 'bc', newText: '' })).toContain(
        'edits 1 and 2 change the same text in line 1',
      );
      expect(await told({ oldText: 'a', newText: 'a' })).toContain('the edits do not change the text');
      expect(await told({ oldText: '', newText: 'a' })).toContain('oldText');
    });

    test('counts overlapping occurrences separately', async () => {
      const { call } = toolbox({ 'a.txt': 'aaa' });
      const { forLLM } = await call('edit_file', { path: 'a.txt', edits: [{ oldText: 'aa', newText: 'b' }] });
      expect(forLLM).toContain('oldText occurs 2 times');
    });

    test('preserves \\r\
 line endings and a UTF-8 byte order mark', async () => {
      const { call, texts } = toolbox({ 'a.txt': '\ufeffone\r\ntwo\r\n' });
      const edits = [{ oldText: 'one\ntwo', newText: '1\n2\n3' }];
      expect((await call('edit_file', { path: 'a.txt', edits })).isError).toBe(false);
      expect(texts()).toEqual({ 'a.txt': '\ufeff1\r\n2\r\n3\r\n' });
    });

    test('is refused if the file changed since it was read, is missing or is binary', async () => {
      const { call, files } = toolbox({ 'a.txt': 'one', 'b.bin': new Uint8Array([0, 1]) });
      const version = versionIn(await call('read_file', { path: 'a.txt' }));
      await files.write('a.txt', new TextEncoder().encode('one and more'));
      const edits = [{ oldText: 'one', newText: 'two' }];
      expect((await call('edit_file', { path: 'a.txt', edits, version })).forLLM).toMatch(
        /has changed since it was read/,
      );
      expect((await call('edit_file', { path: 'b.bin', edits })).forLLM).toContain(
        'cannot be edited: it is binary',
      );
      expect((await call('edit_file', { path: 'c.txt', edits })).forLLM).toBe("There is no 'c.txt'.");
    });
  });

  describe('patch_files', () => {
    const patch = [
      'diff --git a/a.txt b/a.txt',
      '--- a/a.txt',
      '+++ b/a.txt',
      '@@ -1,3 +1,3 @@',
      ' one',
      '-two',
      '+2',
      ' three',
      'diff --git a/new/b.txt b/new/b.txt',
      'new file mode 100644',
      '--- /dev/null',
      '+++ b/new/b.txt',
      '@@ -0,0 +1 @@',
      '+made',
      'diff --git a/c.txt b/c.txt',
      'deleted file mode 100644',
      '--- a/c.txt',
      '+++ /dev/null',
      '@@ -1 +0,0 @@',
      '-gone',
      'diff --git a/d.txt b/e.txt',
      'similarity index 50%',
      'rename from d.txt',
      'rename to e.txt',
      '--- a/d.txt',
      '+++ b/e.txt',
      '@@ -1,2 +1,2 @@',
      ' stays',
      '-before',
      '+after',
      '',
    ].join('\n');
    const before = { 'a.txt': 'one\ntwo\nthree\n', 'c.txt': 'gone\n', 'd.txt': 'stays\nbefore\n' };

    test('changes, creates, deletes and renames files', async () => {
      const { call, texts } = toolbox(before);
      const { isError, forLLM } = await call('patch_files', { patch });
      expect([isError, forLLM.split('\n').map((line) => line.replace(/, version.*/, ''))]).toEqual([
        false,
        ['a.txt: changed', 'new/b.txt: created', 'c.txt: removed', 'e.txt: moved from d.txt'],
      ]);
      expect(texts()).toEqual({
        'a.txt': 'one\n2\nthree\n',
        'e.txt': 'stays\nafter\n',
        'new/b.txt': 'made\n',
      });
    });

    test('changes nothing if a part does not apply, and reports which', async () => {
      const { call, texts } = toolbox({ ...before, 'd.txt': 'other\n', 'new/b.txt': 'there' });
      const { isError, forLLM } = await call('patch_files', { patch });
      expect(isError).toBe(true);
      expect(forLLM).toBe(
        "Nothing was patched:\n- 'new/b.txt' already exists.\n- 'd.txt' does not match the patch. Read it again.",
      );
      expect(texts()).toEqual({ ...before, 'd.txt': 'other\n', 'new/b.txt': 'there' });
    });

    test('refuses a text that is not a patch, and paths outside the folder', async () => {
      const { call } = toolbox(before);
      expect((await call('patch_files', { patch: 'hello' })).forLLM).toContain('it contains no changes');
      const out = '--- /dev/null\n+++ b/../../evil.txt\n@@ -0,0 +1 @@\n+x\n';
      expect((await call('patch_files', { patch: out })).forLLM).toContain('leads out of the folder');
    });
  });

  describe('move_file and delete_file', () => {
    test('move to a free path and create its parent folders', async () => {
      const { call, texts } = toolbox({ 'a.txt': 'a', 'b.txt': 'b', 'c/d.txt': 'd' });
      expect((await call('move_file', { from: 'a.txt', to: 'b.txt' })).forLLM).toBe(
        "'b.txt' already exists.",
      );
      expect((await call('move_file', { from: 'x.txt', to: 'y.txt' })).forLLM).toBe("There is no 'x.txt'.");
      expect((await call('move_file', { from: 'a.txt', to: 'new/a.txt' })).forLLM).toBe(
        'a.txt is now new/a.txt',
      );
      expect((await call('move_file', { from: 'c', to: 'new/c' })).isError).toBe(false);
      expect((await call('move_file', { from: 'new', to: 'new/inner' })).isError).toBe(true);
      expect(texts()).toEqual({ 'b.txt': 'b', 'new/a.txt': 'a', 'new/c/d.txt': 'd' });
    });

    test('delete a file, and a folder with contents only with withContents', async () => {
      const { call, texts } = toolbox({ 'a.txt': 'a', 'c/d/e.txt': 'd', 'f.txt': '' });
      expect((await call('delete_file', { path: 'a.txt' })).forLLM).toBe('a.txt: removed');
      expect((await call('delete_file', { path: 'c' })).forLLM).toBe("The folder 'c' is not empty.");
      expect((await call('delete_file', { path: 'c', withContents: true })).isError).toBe(false);
      expect((await call('delete_file', { path: 'c' })).forLLM).toBe("There is no 'c'.");
      expect((await call('delete_file', { path: '.', withContents: true })).isError).toBe(true);
      expect(texts()).toEqual({ 'f.txt': '' });
    });
  });
});

describe('FileTools', () => {
  test('a file that is too large can be read in parts, but not edited', async () => {
    const huge = new Uint8Array(16_000_001).fill(0x61);
    huge.set([0x62, 0x63, 0x0a], 16_000_000 - 2);
    const files = new MemoryFileSystem({ 'huge.txt': huge });
    const tools = new ToolRegistry().register(...fileTools(files));
    const told = async (tool: string, args: object): Promise<string> =>
      (await tools.execute(tool, args)).forLLM;
    expect(await told('read_file', { path: 'huge.txt' })).toContain('16000001');
    expect(await told('read_file', { path: 'huge.txt', fromByte: 15_999_998 })).toContain('\nbc');
    const edits = [{ oldText: 'bc', newText: 'x' }];
    for (const [tool, args] of [
      ['edit_file', { path: 'huge.txt', edits }],
      ['patch_files', { patch: '--- a/huge.txt\n+++ b/huge.txt\n@@ -1 +1 @@\n-bc\n+x\n' }],
    ] as const)
      expect([tool, await tools.execute(tool, args)]).toMatchObject([
        tool,
        { isError: true, forLLM: expect.stringMatching(/1600000\d|16,?000,?000/) },
      ]);
    expect(Buffer.compare((await files.read('huge.txt')).bytes, huge)).toBe(0);
  });

  test.each([
    ['with a line break at the end', '\n'],
    ['without a line break at the end', ''],
  ])('a read of a file that is too large offers to read on only if there is more: %s', async (_, end) => {
    const line = `${'x'.repeat(999)}\n`;
    const text = `${line.repeat(16_001)}the last${end}`;
    const tools = new ToolRegistry().register(
      ...fileTools(new MemoryFileSystem({ 'huge.txt': Buffer.from(text) })),
    );
    const read = async (args: object): Promise<string> =>
      (await tools.execute('read_file', { path: 'huge.txt', ...args })).forLLM;
    expect(await read({ fromLine: 16_002 })).toMatch(/lines 16002–16002\n16002\tthe last$/);
    expect(await read({ fromLine: 16_001, lines: 2 })).toMatch(/\tthe last$/);
    expect(await read({ fromLine: 16_001, lines: 1 })).toMatch(/\(continue with fromLine 16002\)$/);
    expect(await read({ fromLine: 1, lines: 1 })).toMatch(/\(continue with fromLine 2\)$/);
    expect(await read({ fromLine: 16_003 })).toMatch(/there is no line 16003$/);
  });

  test('is injected with the registered file system, and throws if there is none', async () => {
    const own = container.createChildContainer();
    expect(() => discoverTools({ toolsets: [FileTools], container: own })).toThrow(
      /no FileSystem is registered/,
    );
    own.register(FileSystem as InjectionToken<FileSystem>, {
      useValue: new MemoryFileSystem({ 'a.txt': 'injected' }),
    });
    const tools = new ToolRegistry().register(...discoverTools({ toolsets: [FileTools], container: own }));
    expect((await tools.execute('read_file', { path: 'a.txt' })).forLLM).toContain('injected');
  });

  test('touches reports the accessed paths before the call', async () => {
    const touched: unknown[] = [];
    const policy: ToolPolicy = async ({ tool, arguments: args, context }) => {
      touched.push(await tool.touches?.(args, context));
      return false;
    };
    const tools = new ToolRegistry({ policy }).register(...fileTools(new MemoryFileSystem()));
    const patch = '--- a/x.txt\n+++ b/y.txt\n@@ -1 +1 @@\n-a\n+b\n';
    await tools.execute('read_file', { path: './a/../b.txt' });
    await tools.execute('list_files', {});
    await tools.execute('write_file', { path: 'c.txt', text: '' });
    await tools.execute('move_file', { from: 'd', to: 'e' });
    await tools.execute('patch_files', { patch });
    await tools.execute('delete_file', { path: '../out' });
    expect(touched).toEqual([
      [{ action: 'read', path: 'b.txt' }],
      [{ action: 'read', path: '.' }],
      [{ action: 'write', path: 'c.txt' }],
      ['d', 'e'].map((path) => ({ action: 'write', path })),
      ['x.txt', 'y.txt'].map((path) => ({ action: 'write', path })),
      [],
    ]);
  });

  test('an abort ends a search', async () => {
    const files = new MemoryFileSystem(
      Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`${index}/a`, 'x'])),
    );
    const tools = new ToolRegistry().register(...fileTools(files));
    const { isError } = await tools.executeWithContext(
      'search_files',
      { text: 'y' },
      { signal: AbortSignal.abort() },
    );
    expect(isError).toBe(true);
  });
});
