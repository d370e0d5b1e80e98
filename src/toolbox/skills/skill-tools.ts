import { type Dirent, existsSync, readdirSync, realpathSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse as parseYaml } from 'yaml';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import {
  type AuthorFault,
  checkOptions,
  InvalidOptionsError,
  ToolDeclarationError,
} from '../../core/errors/author-fault.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord } from '../../core/kernel/json.js';
import { either, FILLED_TEXT, LIST, optionTable, required } from '../../core/kernel/options.js';
import { defineTool } from '../../tools/discovery/define-tool.js';
import { type BroughtText, isWithin, pathWithin, readBroughtFile } from '../paths/folder-path.js';

/** Options of {@link skillTools}. */
export interface SkillToolsOptions {
  /** A folder of skills, or several. Each skill is a subfolder with a `SKILL.md`. */
  readonly folder: string | readonly string[];
  /**
   * Base folder for the paths that policies see. Skills elsewhere are reported relative to their folder of skills.
   * Default: the working directory.
   */
  readonly root?: string;
}

const OPTIONS = optionTable<SkillToolsOptions>('skillTools', {
  folder: required(either(FILLED_TEXT, LIST)),
  root: FILLED_TEXT,
});

const PARAMETERS: JsonSchema = {
  type: 'object',
  properties: {
    file: {
      type: 'string',
      description: 'Path of another file of the skill, as the skill names it; default: the skill itself',
    },
  },
  required: [],
};

/**
 * Makes tools from skills: a folder with a `SKILL.md` becomes the tool `skill_<name>`, with its description. Its text
 * and the names of its files are read when it is used; files are read one at a time, and policies see each. No scripts
 * are run: the model runs them with the shell tools, under their permissions.
 *
 * @throws InvalidOptionsError (521) for missing folders, and ToolDeclarationError (502) for unreadable `SKILL.md`
 * files; each reports all faults.
 *
 * @example
 * ```ts
 * tools.register(...skillTools({ folder: '.skills' }));
 * ```
 */
export function skillTools(options: SkillToolsOptions): ToolDefinition[] {
  checkOptions(options, OPTIONS);
  const { folder, root = process.cwd() } = options;
  const found = (typeof folder === 'string' ? [folder] : folder).map(findSkills);
  const skills = found.flatMap((part) => part.skills);
  const faults = [
    ...found.flatMap((part) => part.faults),
    ...skills
      .filter(({ name }, index) => skills.findIndex((other) => other.name === name) < index)
      .map(({ name, folder: where }) => ({
        where,
        problem: `there is another skill '${name}'`,
        fix: 'another name in its front matter',
      })),
  ];
  const missing = found.flatMap(({ problem }) => (problem === undefined ? [] : [{ ...NO_FOLDER, problem }]));
  if (missing.length > 0)
    throw new InvalidOptionsError([...missing, ...faults.map((fault) => ({ ...fault, option: '' }))]);
  if (faults.length > 0) throw new ToolDeclarationError(faults);
  const base = resolve(root);
  return skills.map((skill) =>
    defineTool({
      name: `skill_${skill.name.replaceAll('-', '_')}`,
      description: skill.description,
      parameters: PARAMETERS,
      annotations: { title: skill.name, readOnly: true },
      touches: ({ file }) => skillTouches(skill, file === undefined ? undefined : String(file), base),
      execute: ({ file }) => (file === undefined ? describeSkill(skill) : readInside(skill, String(file))),
    }),
  );
}

const NO_FOLDER = {
  where: 'skillTools',
  option: 'folder',
  fix: 'the path of a folder whose subfolders contain a SKILL.md',
} as const;

async function describeSkill(skill: Skill): Promise<string> {
  const [text, files] = await Promise.all([skillText(skill), skillFiles(skill)]);
  if (files.length === 0) return text;
  const names = files.map((file) => `- ${file}`).join('\n');
  return `${text}\n\nFiles of this skill, in ${skill.folder}:\n${names}`;
}

/** What is known about a skill before it is used. */
interface Skill {
  readonly name: string;
  readonly description: string;
  /** The folder of its `SKILL.md`. */
  readonly folder: string;
  /** The folder of skills that contains it. */
  readonly home: string;
}

/** The skills of a folder, and faults of invalid ones. */
interface FoundSkills {
  readonly skills: readonly Skill[];
  readonly faults: readonly AuthorFault[];
  /** Why it is not a folder of skills. */
  readonly problem?: string;
}

const FILE = 'SKILL.md';

/** Names as in https://agentskills.io/specification. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const LONGEST_NAME = 57;
const LONGEST_DESCRIPTION = 1_024;

/** Reads the front matter of every `SKILL.md` in the subfolders of `folder`, sorted by name. */
function findSkills(folder: string): FoundSkills {
  let entries: readonly Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    let why = `which cannot be read (${code ?? errorMessage(error)})`;
    if (code === 'ENOENT') why = 'which does not exist';
    if (code === 'ENOTDIR') why = 'which is not a folder';
    return { skills: [], faults: [], problem: `folder is ${resolve(folder)}, ${why}` };
  }
  const skills: Skill[] = [];
  const faults: AuthorFault[] = [];
  for (const { name } of entries
    .filter((entry) => !entry.isFile())
    .sort((first, second) => (first.name < second.name ? -1 : 1))) {
    const read = readSkill(join(folder, name), folder);
    if (read === undefined) continue;
    if ('description' in read) skills.push(read);
    else faults.push(...read.faults);
  }
  return { skills, faults };
}

/** `undefined` if the folder has no `SKILL.md`: not every folder is a skill. */
function readSkill(
  folder: string,
  home: string,
): Skill | { readonly faults: readonly AuthorFault[] } | undefined {
  if (!existsSync(join(folder, FILE))) return undefined;
  const where = `${basename(folder)}/${FILE}`;
  const file = readFileOf(folder, home);
  if (!file.ok)
    return { faults: [faultOf(where, file.problem, 'a regular file in its own folder, not a link')] };
  const front = frontMatter(file.text);
  if ('problem' in front) return { faults: [faultOf(where, front.problem, FIX)] };
  const { name, description } = front.values;
  const faults: AuthorFault[] = [];
  if (typeof name !== 'string' || !NAME.test(name) || name.length > LONGEST_NAME)
    faults.push(
      faultOf(where, 'its name must be lower-case letters, digits and single hyphens', 'name: pdf-forms'),
    );
  if (
    typeof description !== 'string' ||
    description.trim() === '' ||
    description.length > LONGEST_DESCRIPTION
  )
    faults.push(
      faultOf(where, 'it has no description of 1 to 1,024 characters', 'description: What it does, and when'),
    );
  if (faults.length > 0) return { faults };
  return { name: name as string, description: (description as string).trim(), folder, home };
}

/** Refuses a link out of the folder: it would make its whole target part of the skill. */
function readFileOf(folder: string, home: string): BroughtText {
  try {
    if (isWithin(realpathSync.native(folder), realpathSync.native(home)))
      return readBroughtFile(join(folder, FILE), folder);
    return { ok: false, problem: `its folder is a link that leads out of ${resolve(home)}` };
  } catch (error) {
    return { ok: false, problem: `it cannot be read: ${errorMessage(error)}` };
  }
}

const FIX = '---\\nname: pdf-forms\\ndescription: What it does, and when to use it\\n---';

function frontMatter(
  text: string,
): { readonly values: Readonly<Record<string, unknown>> } | { readonly problem: string } {
  const lines = text.split(/\r?\n/);
  const end = lines.indexOf('---', 1);
  if (lines[0]?.trimEnd() !== '---' || end < 0) return { problem: 'it does not begin with front matter' };
  try {
    const values: unknown = parseYaml(lines.slice(1, end).join('\n'));
    return isRecord(values)
      ? { values }
      : { problem: 'its front matter is not a mapping of names to values' };
  } catch (error) {
    return { problem: `its front matter is not YAML: ${errorMessage(error).split('\n')[0]}` };
  }
}

function faultOf(where: string, problem: string, fix: string): AuthorFault {
  return { where, problem, fix };
}

/** The text of a skill without its front matter. */
async function skillText(skill: Skill): Promise<string> {
  const text = await readInside(skill, FILE);
  const lines = text.split(/\r?\n/);
  return lines
    .slice(lines.indexOf('---', 1) + 1)
    .join('\n')
    .trim();
}

const MOST_FILES = 200;

/** Paths of the other files of a skill, relative to its folder, with `/`. */
async function skillFiles(skill: Skill): Promise<readonly string[]> {
  const folder = await realFolder(skill);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => path !== FILE)
    .sort()
    .slice(0, MOST_FILES);
}

/**
 * Reads a text file of a skill.
 *
 * @throws Error with the reason if it cannot be read. Files outside of the skill's folder, also through a link, count
 * as missing.
 */
async function readInside(skill: Skill, path: string): Promise<string> {
  const file = await realFile(skill, path);
  if (file === undefined) throw new Error(`The skill ${skill.name} has no file ${path}.`);
  const read = readBroughtFile(file, await realFolder(skill));
  if (!read.ok) throw new Error(`${path} cannot be read: ${read.problem}.`);
  if (read.text.includes('\0')) throw new Error(`${path} is not text.`);
  return read.text;
}

/** The skill's folder with links resolved; throws if it is no longer in its folder of skills. */
async function realFolder({ name, folder, home }: Skill): Promise<string> {
  const [real, around] = await Promise.all([realpath(folder), realpath(home)]);
  if (!isWithin(real, around)) throw new Error(`The skill ${name} is no longer in ${home}.`);
  return real;
}

async function realFile(skill: Skill, path: string): Promise<string | undefined> {
  const folder = await realFolder(skill);
  const file = await realpath(join(folder, path)).catch(() => undefined);
  return file !== undefined && isWithin(file, folder) ? file : undefined;
}

/**
 * The access of reading a skill's file, under its own path and with links resolved. Paths are relative to `root`. For a
 * skill outside of `root`, they are relative to its folder of skills, because naming that folder permits reading it;
 * the absolute path is added.
 */
async function skillTouches(skill: Skill, path: string | undefined, root: string): Promise<ResourceAccess[]> {
  const named = path ?? FILE;
  const file = await realFile(skill, named);
  if (file === undefined) return [];
  const bases = [root, skill.home].map((base) => resolve(base));
  const real = await Promise.all(bases.map((base) => realpath(base).catch(() => base)));
  const touchOf = (one: string): readonly ResourceAccess[] => {
    for (const [index, base] of bases.entries()) {
      const path = pathWithin(one, base) ?? pathWithin(one, real[index] ?? base);
      if (path === undefined) continue;
      const [absolute, folder] = [one, real[index] ?? base].map((name) => name.split(sep).join('/'));
      return [{ action: 'read', path, ...(index === 0 ? { folder } : { absolute }) }];
    }
    return [];
  };
  const touches = [resolve(skill.folder, named), file].flatMap(touchOf);
  return touches.filter(
    (one, index) => touches.findIndex((other) => isDeepStrictEqual(other, one)) === index,
  );
}
