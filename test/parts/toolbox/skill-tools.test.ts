import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { InvalidOptionsError, ToolDeclarationError, ToolRegistry } from 'toolwright';
import { Permissions, type PermissionsOptions } from 'toolwright/toolbox/permissions';
import { shellTools } from 'toolwright/toolbox/shell';
import { skillTools } from 'toolwright/toolbox/skills';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-skills-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function writeSkill(name: string, description: string, text = 'Do it.'): void {
  write(
    `${name}/SKILL.md`,
    `---\nname: ${name}\ndescription: ${description}\nlicense: MIT\n---\n\n${text}\n`,
  );
}

const registry = () => new ToolRegistry().register(...skillTools({ folder }));

function faults(): readonly string[] {
  try {
    skillTools({ folder });
  } catch (error) {
    if (error instanceof ToolDeclarationError || error instanceof InvalidOptionsError)
      return error.faults.map(({ where, problem }) => `${where}: ${problem}`);
    throw error;
  }
  return [];
}

describe('skillTools', () => {
  test('skills become tools ordered by name; other folders and files are ignored', () => {
    writeSkill('pdf-forms', 'Fills PDF forms. Use when there is a form.');
    writeSkill('charts', '"Draws: charts"');
    write('notes/readme.md', 'no skill');
    write('loose.md', '---\n---');
    const shown = skillTools({ folder }).map(({ name, description, annotations }) => [
      name,
      description,
      annotations,
    ]);
    expect(shown).toEqual([
      ['skill_charts', 'Draws: charts', { title: 'charts', readOnly: true }],
      [
        'skill_pdf_forms',
        'Fills PDF forms. Use when there is a form.',
        { title: 'pdf-forms', readOnly: true },
      ],
    ]);
  });

  test('a skill is read at the time of the call, with its text and its list of files', async () => {
    writeSkill('pdf', 'Fills forms', '# How\n\nRun scripts/fill.py.');
    write('pdf/scripts/fill.py', 'print(1)');
    write('pdf/forms.md', 'About forms');
    const tools = registry();
    writeSkill('pdf', 'Fills forms', '# Changed since');
    expect((await tools.execute('skill_pdf', {})).forLLM).toBe(
      `# Changed since\n\nFiles of this skill, in ${join(folder, 'pdf')}:\n- forms.md\n- scripts/fill.py`,
    );
    expect((await tools.execute('skill_pdf', { file: 'scripts/fill.py' })).forLLM).toBe('print(1)');
  });

  test('files outside of the skill cannot be read, by path or through links', async () => {
    writeSkill('pdf', 'Fills forms');
    write('secret.txt', 'secret');
    symlinkSync(join(folder, 'secret.txt'), join(folder, 'pdf/link.txt'));
    symlinkSync(folder, join(folder, 'pdf/up'));
    const tools = registry();
    for (const file of [
      '../secret.txt',
      'link.txt',
      'up/secret.txt',
      join(folder, 'secret.txt'),
      '..',
      '.',
      '',
      'none',
    ])
      expect([file, await tools.execute('skill_pdf', { file })]).toEqual([
        file,
        expect.objectContaining({ isError: true, forLLM: expect.not.stringContaining('secret\n') }),
      ]);
    write('pdf/blob', new Uint8Array([1, 0, 2]));
    expect((await tools.execute('skill_pdf', { file: 'blob' })).forLLM).toBe('blob is not text.');
  });

  test('path rules apply to the files of a skill by name and by link target', async () => {
    write('project/skills/w/SKILL.md', '---\nname: w\ndescription: W\n---\ntext of w');
    write('project/skills/w/.env.prod', 'secret');
    write('project/skills/w/a.md', 'harmless');
    symlinkSync('.env.prod', join(folder, 'project/skills/w/notes.txt'));
    write('elsewhere/u/SKILL.md', '---\nname: u\ndescription: U\n---\ntext of u');
    write('elsewhere/u/.env', 'secret');
    const root = join(folder, 'project');
    const reads = async (
      rules: PermissionsOptions['rules'],
      name: string,
      file?: string,
    ): Promise<boolean> => {
      const { policy } = new Permissions({ mode: 'read-only', rules: rules ?? [] });
      const folders = [join(root, 'skills'), join(folder, 'elsewhere')];
      const tools = new ToolRegistry({ policy }).register(...skillTools({ folder: folders, root }));
      const { isError } = await tools.execute(name, file === undefined ? {} : { file });
      return !isError;
    };
    const secrets = [{ decision: 'deny', path: '**/.env*' }] as const;
    expect(await reads([], 'skill_w', '.env.prod')).toBe(true);
    for (const file of ['.env.prod', './x/../.env.prod', 'notes.txt'])
      expect([file, await reads(secrets, 'skill_w', file)]).toEqual([file, false]);
    expect(await reads([{ decision: 'ask', path: '**/notes.txt' }], 'skill_w', 'notes.txt')).toBe(false);
    expect(await reads(secrets, 'skill_w', 'a.md')).toBe(true);
    expect(await reads(secrets, 'skill_u')).toBe(true);
    expect(await reads(secrets, 'skill_u', '.env')).toBe(false);
    expect(await reads([{ decision: 'deny', path: 'skills/**' }], 'skill_w')).toBe(false);
    expect(await reads([{ decision: 'deny', path: 'u/SKILL.md' }], 'skill_u')).toBe(false);
  });

  test('rules with absolute paths also apply to skills outside of the folder', async () => {
    write('project/skills/w/SKILL.md', '---\nname: w\ndescription: W\n---\ntext of w');
    write('real/u/SKILL.md', '---\nname: u\ndescription: U\n---\ntext of u');
    write('real/u/notes.txt', 'notes');
    symlinkSync('real', join(folder, 'elsewhere'));
    const root = join(folder, 'project');
    const read = async (rule: { path: string; decision?: 'ask' }, file?: string) => {
      const rules = [{ decision: 'deny', ...rule } as const];
      const { policy } = new Permissions({ mode: 'auto', rules });
      const folders = [join(root, 'skills'), join(folder, 'elsewhere')];
      const tools = new ToolRegistry({ policy }).register(...skillTools({ folder: folders, root }));
      const { isError, forLLM } = await tools.execute('skill_u', file === undefined ? {} : { file });
      return isError ? forLLM : 'read';
    };
    for (const home of ['elsewhere', 'real']) {
      const denied = await read({ path: join(folder, home, '**') });
      expect(denied).toContain(`reads '${join(folder, home, 'u/SKILL.md')}'`);
      const asked = await read({ decision: 'ask', path: join(folder, home, 'u/notes.txt') }, 'notes.txt');
      expect(asked).toContain('which cannot be given here');
      expect(await read({ path: join(folder, home, 'u/notes.txt') })).toBe('read');
    }
    expect(await read({ path: '/elsewhere/**' })).toBe('read');
    expect(await read({ path: '**/elsewhere/**' })).toBe('read');
  });

  test('a skill behind a link that leads out is refused, even if the link was created later', async () => {
    write('ext/SKILL.md', '---\nname: z\ndescription: Z\n---\ntext');
    write('ext/secret.txt', 'secret');
    write('sk/good/SKILL.md', '---\nname: good\ndescription: Good\n---\ntext');
    symlinkSync('good', join(folder, 'sk/again'));
    folder = join(folder, 'sk');
    try {
      expect(faults()).toEqual([expect.stringMatching(/another skill 'good'$/)]);
      rmSync(join(folder, 'again'));
      const tools = registry();
      symlinkSync('../ext', join(folder, 'z'));
      mkdirSync(join(folder, 'y'));
      symlinkSync('../../ext/SKILL.md', join(folder, 'y/SKILL.md'));
      write('SKILL.md', '---\nname: all\ndescription: All\n---\ntext');
      symlinkSync('.', join(folder, 'x'));
      expect(faults()).toEqual([
        `x/SKILL.md: its folder is a link that leads out of ${folder}`,
        `y/SKILL.md: it is a link that leads out of ${join(folder, 'y')}`,
        `z/SKILL.md: its folder is a link that leads out of ${folder}`,
      ]);
      rmSync(join(folder, 'good'), { recursive: true });
      symlinkSync('../ext', join(folder, 'good'));
      for (const args of [{}, { file: 'secret.txt' }]) {
        const { isError, forLLM } = await tools.execute('skill_good', args);
        expect([isError, forLLM]).toEqual([true, `The skill good is no longer in ${folder}.`]);
      }
    } finally {
      folder = dirname(folder);
    }
  });

  test('scripts of a skill run only by shell tools, under their permissions', async () => {
    const script = 'pdf/scripts/fill.sh';
    const program = 'node pdf/scripts/fill.mjs';
    write('pdf/SKILL.md', '---\nname: pdf\ndescription: Fills forms\n---\nRun scripts/fill.mjs.');
    write(script, `#!/bin/bash\ntouch ${join(folder, 'ran')}\n`);
    chmodSync(join(folder, script), 0o755);
    const made = JSON.stringify(join(folder, 'ran'));
    write('pdf/scripts/fill.mjs', `import { writeFileSync } from 'node:fs';\nwriteFileSync(${made}, '');\n`);
    const runs = async (options: PermissionsOptions, command: string): Promise<boolean> => {
      rmSync(join(folder, 'ran'), { force: true });
      const { policy } = new Permissions(options);
      const tools = new ToolRegistry({ policy }).register(
        ...skillTools({ folder }),
        ...shellTools({ folder }),
      );
      expect((await tools.execute('skill_pdf', { file: 'scripts/fill.mjs' })).isError).toBe(false);
      expect(existsSync(join(folder, 'ran'))).toBe(false);
      await tools.execute('run_command', { command });
      return existsSync(join(folder, 'ran'));
    };
    const allow = (command: string) => ({ decision: 'allow', command }) as const;
    expect(await runs({ mode: 'ask' }, program)).toBe(false);
    expect(await runs({ mode: 'ask', rules: [allow(program)] }, program)).toBe(true);
    expect(await runs({ mode: 'auto', rules: [{ decision: 'deny', command: 'node' }] }, program)).toBe(false);
    // A rule that allows a script also allows everything the script does.
    for (const command of [script, `bash ${script}`]) {
      expect(await runs({ mode: 'auto' }, command)).toBe(false);
      expect(await runs({ mode: 'auto', rules: [allow(command)] }, command)).toBe(true);
    }
  });

  test('pipes and files that are too large are refused as skill files', async () => {
    writeSkill('pdf', 'Fills forms');
    execFileSync('mkfifo', [join(folder, 'pdf/pipe.md')]);
    const { forLLM } = await registry().execute('skill_pdf', { file: 'pipe.md' });
    expect(forLLM).toBe('pipe.md cannot be read: it is not a regular file.');
    mkdirSync(join(folder, 'a'));
    execFileSync('mkfifo', [join(folder, 'a/SKILL.md')]);
    write('b/SKILL.md', ' '.repeat(1_048_577));
    expect(faults()).toEqual([
      'a/SKILL.md: it is not a regular file',
      'b/SKILL.md: it has 1048577 bytes; the limit is 1048576',
    ]);
  });

  test('the errors of all skills are thrown together', () => {
    write('a/SKILL.md', 'no front matter');
    write('b/SKILL.md', '---\nname: [\n---\n');
    write('c/SKILL.md', '---\nname: Not A Name\n---\n');
    write('d/SKILL.md', '---\nname: same\ndescription: one\n---\n');
    write('e/SKILL.md', '---\nname: same\ndescription: two\n---\n');
    expect(faults()).toEqual([
      'a/SKILL.md: it does not begin with front matter',
      expect.stringMatching(/^b\/SKILL\.md: its front matter is not YAML: /),
      'c/SKILL.md: its name must be lower-case letters, digits and single hyphens',
      'c/SKILL.md: it has no description of 1 to 1,024 characters',
      `${join(folder, 'e')}: there is another skill 'same'`,
    ]);
    rmSync(folder, { recursive: true });
    expect(faults()).toEqual([`skillTools: folder is ${folder}, which does not exist`]);
  });

  test('skills with Windows line endings and a byte order mark are read', async () => {
    write('w/SKILL.md', '\uFEFF---\r\nname: w\r\ndescription: >\r\n  two\r\n  lines\r\n---\r\ntext\r\n');
    const tools = registry();
    expect(tools.get('skill_w')?.description).toBe('two lines');
    expect((await tools.execute('skill_w', {})).forLLM).toBe('text');
  });
});
